// TreeModel.swift - predicts the result of a plan without threads. For a deterministic plan: how each operation ends,
// with how many runs and attempts, and how often handlers are called. For every plan: which ends are possible, and
// whether a record of what happened is consistent.
//
// Two things are nondeterministic: what happens to the siblings when a child of a transactional operation does not
// finish, and the state in which commands from outside find the operations.

/// How an operation ended.
enum ModelEnding: Hashable, Sendable, CustomStringConvertible {
    case finished(Int)
    case failed(node: Int)
    case refused
    case cancelled(CancelKind)

    enum CancelKind: String, Hashable, Sendable {
        case requested, child, parent, displaced, queueFull, removed, timedOut, threw, task, exhausted, other
    }

    var isFinished: Bool { if case .finished = self { true } else { false } }

    var description: String {
        switch self {
        case .finished(let value): "finished(\(value))"
        case .failed(let node): "failed(#\(node))"
        case .refused: "refused"
        case .cancelled(let kind): "cancelled(\(kind))"
        }
    }
}

/// The required result of a deterministic plan.
struct TreeModel {
    /// One operation created for a node. Each run of the enclosing block creates another one.
    struct Expected: Equatable, CustomStringConvertible {
        var ending: ModelEnding
        var attempt: Int
        var runs: Int
        /// Calls of the cancellation handler.
        var decisions: Int

        var description: String { "\(ending), attempt \(attempt), \(runs) runs, \(decisions) decisions" }
    }

    private(set) var operations: [Int: [Expected]] = [:]
    /// Leaves in the order in which their blocks begin; nil where several may run concurrently.
    private(set) var order: [Int]?

    /// - Returns: nil if the plan is nondeterministic.
    static func of(_ plan: TreePlan) -> TreeModel? {
        guard plan.commands.isEmpty, !plan.displaces else { return nil }
        // The timeout may expire while the operation still waits for a slot.
        if plan.queue != nil, plan.nodes.contains(where: { $0.leaf?.isTimed == true }) { return nil }
        var evaluation = Evaluation()
        do {
            for root in plan.roots {
                let operation = evaluation.made(root, in: nil)
                _ = try evaluation.run(operation)
                evaluation.settle(operation)
            }
        } catch { return nil }
        var model = TreeModel()
        for (id, operations) in evaluation.operations {
            model.operations[id] = operations.map {
                Expected(ending: $0.ending!, attempt: $0.attempt, runs: $0.runs, decisions: $0.decisions)
            }
        }
        let isSerial =
            (plan.roots.count == 1 || plan.isChained)
            && !plan.nodes.contains { $0.composite?.transaction != nil }
        model.order = isSerial ? evaluation.order : nil
        return model
    }
}

extension TreePlan {
    /// Whether the queue may reject or displace operations.
    var displaces: Bool {
        guard let queue else { return false }
        return queue.pending != nil || queue.order == .aggressiveLIFO
    }
}

private struct LeftToChance: Error {}

/// Facts about an operation during the evaluation of a plan.
private final class Modelled {
    let node: TreePlan.Node
    /// The evaluation holds all operations, so the parent is alive.
    weak let parent: Modelled?
    var attempt = 0
    var runs = 0
    var decisions = 0
    /// The attempt for which its handler was last called.
    var asked = 0
    var ending: ModelEnding?
    /// The children of the current epoch.
    var children: [Modelled] = []
    var hasThrown = false
    var hasFallenBack = false
    /// A resolver has used up its attempts; the handler can no longer redo anything.
    var isExhausted = false
    /// The operation continues with its current children.
    var isAwakening = false

    init(_ node: TreePlan.Node, _ parent: Modelled?) {
        self.node = node
        self.parent = parent
    }
}

/// Evaluates a plan sequentially, in an order in which its operations may run.
private struct Evaluation {
    var operations: [Int: [Modelled]] = [:]
    var order: [Int] = []
    /// The number of runs by node, over all operations of the node.
    private var runs: [Int: Int] = [:]

    mutating func made(_ node: TreePlan.Node, in parent: Modelled?) -> Modelled {
        let operation = Modelled(node, parent)
        operations[node.id, default: []].append(operation)
        return operation
    }

    private mutating func begin(_ operation: Modelled) -> Int {
        operation.runs += 1
        runs[operation.node.id, default: 0] += 1
        return runs[operation.node.id]!
    }

    /// Runs an undecided operation until it is decided.
    mutating func run(_ operation: Modelled) throws -> ModelEnding {
        if operation.attempt == 0 { operation.attempt = 1 }
        let ending =
            switch operation.node.body {
            case .leaf(let leaf): run(operation, leaf)
            case .composite(let composite): try run(operation, composite)
            }
        operation.ending = ending
        return ending
    }

    // MARK: Leaves

    private mutating func run(_ operation: Modelled, _ leaf: TreePlan.Leaf) -> ModelEnding {
        let id = operation.node.id
        while true {
            let run = begin(operation)
            order.append(id)
            if let parent = operation.parent {
                for node in leaf.late { parent.children.append(made(node, in: parent)) }
            }
            switch leaf.step(run) {
            case .finish: return .finished(id)
            case .cancel: return .cancelled(.requested)
            case .throwsCancellation: return .cancelled(.threw)
            case .never: return .cancelled(.timedOut)
            case .rerun: break
            case .fail, .throwsError:
                guard let resolver = leaf.resolver else { return .failed(node: id) }
                if resolver.allows(after: operation.attempt) { break }
                defer { operation.hasFallenBack = true }
                // A fallback that cancels without a reason does not change the outcome: the operation fails.
                return resolver.fallback == .finish && !operation.hasFallenBack
                    ? .finished(id) : .failed(node: id)
            }
            operation.attempt += 1
        }
    }

    // MARK: Composites

    private mutating func run(_ operation: Modelled, _ composite: TreePlan.Composite) throws -> ModelEnding {
        while true {
            if !operation.isAwakening {
                let run = begin(operation)
                operation.children = []
                for node in composite.children { operation.children.append(made(node, in: operation)) }
                operation.hasThrown = run <= composite.throwing
                // Some children may have begun, or not.
                if operation.hasThrown, composite.transaction != nil, !composite.children.isEmpty {
                    throw LeftToChance()
                }
            }
            operation.isAwakening = false
            let cause =
                if operation.hasThrown { ModelEnding.failed(node: operation.node.id) } else {
                    try runChildren(of: operation, composite)
                }
            guard let cause else { return .finished(operation.node.value ?? 0) }
            for child in operation.children { markCancelled(child) }
            switch decide(operation, composite, cause) {
            case .ended(let ending): return ending
            case .awake: awaken(operation)
            case .rerun: drop(operation)
            }
            operation.attempt += 1
        }
    }

    /// - Returns: how the first child that did not finish ended.
    private mutating func runChildren(of operation: Modelled, _ composite: TreePlan.Composite) throws
        -> ModelEnding?
    {
        var next = 0
        while next < operation.children.count {  // the array may grow meanwhile
            let child = operation.children[next]
            next += 1
            if child.ending?.isFinished == true { continue }
            let ending = try run(child)
            if ending.isFinished { continue }
            if composite.transaction != nil { throw LeftToChance() }
            return ending
        }
        return nil
    }

    private func markCancelled(_ operation: Modelled) {
        guard operation.ending == nil else { return }
        operation.ending = .cancelled(.parent)
        for child in operation.children { markCancelled(child) }
    }

    private func drop(_ operation: Modelled) {
        for child in operation.children { settle(child) }
        operation.children = []
        operation.hasThrown = false
    }

    private func awaken(_ operation: Modelled) {
        operation.isAwakening = true
        for child in operation.children where child.ending?.isFinished != true {
            child.ending = nil
            guard child.runs > 0 else { continue }
            child.attempt += 1
            guard child.node.composite != nil else { continue }
            if child.hasThrown { drop(child) } else { awaken(child) }
        }
    }

    /// Called when no redo can reach the operation any more. A handler not yet called for the current attempt is now
    /// notified of the end.
    func settle(_ operation: Modelled) {
        for child in operation.children { settle(child) }
        guard operation.node.composite?.handler != nil, operation.ending?.isFinished != true else { return }
        if operation.asked == 0 || operation.asked != operation.attempt { operation.decisions += 1 }
        operation.asked = max(operation.attempt, 1)
    }

    // MARK: Decisions

    private enum Decided {
        case ended(ModelEnding), awake, rerun
    }

    private func decide(_ operation: Modelled, _ composite: TreePlan.Composite, _ cause: ModelEnding)
        -> Decided
    {
        let byCause: ModelEnding = if case .failed = cause { cause } else { .cancelled(.child) }
        guard let handler = composite.handler else {
            guard let resolver = composite.resolver else { return .ended(byCause) }
            return resolve(operation, resolver, byCause)
        }
        operation.decisions += 1
        operation.asked = operation.attempt
        guard operation.attempt < handler.below, !operation.isExhausted else { return .ended(byCause) }
        switch handler.decision {
        case .nothing, .cancel: return .ended(byCause)
        case .awake, .deferredAwake: return operation.hasThrown ? .ended(byCause) : .awake
        case .rerun, .pausedRerun: return .rerun
        case .resolve(let resolver): return resolve(operation, resolver, byCause)
        }
    }

    private func resolve(_ operation: Modelled, _ resolver: TreePlan.Resolver, _ byCause: ModelEnding)
        -> Decided
    {
        if resolver.allows(after: operation.attempt) {
            return resolver.reruns || operation.hasThrown ? .rerun : .awake
        }
        operation.isExhausted = true
        return .ended(byCause)
    }
}

extension TreePlan.Resolver {
    /// Whether this attempt may be followed by another one.
    func allows(after attempt: Int) -> Bool { attempt < maxAttempts && attempt < refusesFrom ?? .max }
}

// MARK: - Consistency of a record

extension TreeModel {
    /// Returns where the record contradicts the model of a deterministic plan.
    func objections(to record: TreeRecord) -> [String] {
        var objections: [String] = []
        for (id, expected) in operations.sorted(by: { $0.key < $1.key }) {
            let found = record.operations.filter { $0.node.id == id && !$0.isForgotten }
            if found.count != expected.count {
                objections.append("#\(id) was made \(found.count) times, not \(expected.count)")
                continue
            }
            for (entry, expected) in zip(found, expected) {
                guard let attempt = entry.attempt, let runs = entry.numberOfRuns, let ending = entry.ending
                else { continue }
                let actual = Expected(
                    ending: ending, attempt: attempt, runs: runs, decisions: entry.decisions.count)
                if actual != expected { objections.append("#\(id): \(actual); expected: \(expected)") }
            }
        }
        if let order {
            let begun = record.operations.filter { $0.node.leaf != nil }
                .flatMap { entry in entry.blocks.map { (entry.node.id, $0.begin) } }
                .sorted { $0.1 < $1.1 }.map(\.0)
            if begun != order { objections.append("leaves began in the order \(begun), not \(order)") }
        }
        return objections
    }
}

extension TreeRecord {
    /// Returns the violations of rules that hold for every plan, whatever commands came from outside.
    func objections(to plan: TreePlan) -> [String] {
        var all = objections
        for index in operations.indices where !operations[index].isForgotten {
            let entry = operations[index]
            let found = objectionsToOne(index, plan) + objectionsToComposite(index)
            all += found.map { "#\(entry.node.id) (\(entry.ending?.description ?? "no ending")): \($0)" }
        }
        if let queue = plan.queue, !plan.commands.contains(where: { $0.what == .widen }) {
            let count = most(operations.flatMap(\.blocks).map { [($0.begin, $0.returned ?? .max)] })
            if count > queue.running { all.append("\(count) blocks ran at once in the queue") }
        }
        return all
    }

    private func objectionsToOne(_ index: Int, _ plan: TreePlan) -> [String] {
        let entry = operations[index]
        var found: [String] = []
        let isWatched = entry.node.isWatched || entry.parent == nil
        if isWatched, entry.outcomes.count != 1 { found.append("\(entry.outcomes.count) outcomes") }
        if let told = entry.outcomes.first, let ending = entry.ending, told.ending != ending {
            found.append("told \(told.ending)")
        }
        if entry.ending == nil, !plan.dropsHandles { found.append("it has not ended") }
        // A registration block is not called if its attempt is over by then.
        if let runs = entry.numberOfRuns, runs != entry.blocks.count,
            entry.node.composite == nil || runs < entry.blocks.count
        {
            found.append("\(runs) runs, and \(entry.blocks.count) blocks")
        }
        let attempts = entry.blocks.compactMap(\.attempt)
        if zip(attempts, attempts.dropFirst()).contains(where: { $0 >= $1 }) {
            found.append("attempts \(attempts)")
        }
        if let attempt = entry.attempt, attempt < attempts.last ?? 0 || attempt < entry.blocks.count {
            found.append("attempt \(attempt) after \(entry.blocks.count) blocks, of the attempts \(attempts)")
        }
        for block in entry.blocks {
            guard let returned = block.returned else {
                found.append("a block has not returned")
                continue
            }
            for (above, told) in outcomes(above: index) where told < returned {
                found.append("a block returned after #\(above) had told of its outcome")
            }
        }
        if case .cancelled(.requested)? = entry.ending, !entry.isCancelAsked,
            !plan.commands.contains(where: { $0.what == .cancelAll })
        {
            found.append("nobody has cancelled it")
        }
        if entry.parent == nil, entry.reasons > 0, let ending = entry.ending, ending != .cancelled(.requested)
        {
            found.append("it had been cancelled")
        }
        if entry.parent == nil, entry.cancellations > 1 {
            found.append("cancelled \(entry.cancellations) times")
        }
        // An operation to be rerun waits in the queue again, and may be displaced there.
        if case .cancelled(.displaced)? = entry.ending, entry.blocks.count >= entry.attempt ?? .max,
            !entry.blocks.isEmpty
        {
            found.append("it had begun")
        }
        if case .cancelled(.parent)? = entry.ending {
            guard let parent = entry.parent else { return found + ["it has no parent"] }
            let isOld = entry.epoch < operations[parent].children.count - 1
            if !isOld, operations[parent].ending?.isFinished == true {
                found.append("its composite has finished")
            }
        }
        return found
    }

    /// The times at which the operation and its enclosing composites delivered their outcomes.
    private func outcomes(above index: Int) -> [(node: Int, time: Int)] {
        var times: [(Int, Int)] = []
        var next: Int? = index
        while let one = next {
            if let time = operations[one].outcomes.first?.time {
                times.append((operations[one].node.id, time))
            }
            next = operations[one].parent
        }
        return times
    }

    // MARK: Composites

    private func objectionsToComposite(_ index: Int) -> [String] {
        let entry = operations[index]
        guard let composite = entry.node.composite else { return [] }
        var found: [String] = []
        if let ending = entry.ending, ending != .refused || entry.parent == nil {
            if entry.completions != (ending.isFinished && composite.hasCompletion ? 1 : 0) {
                found.append("\(entry.completions) completions")
            }
            if composite.handler != nil, entry.hasClosures {
                if !ending.isFinished, entry.decisions.isEmpty { found.append("its handler was not called") }
                // One more call is allowed for an operation that was cancelled before its first attempt and
                // begins nevertheless.
                let attempt = entry.attempt ?? 1_000
                if entry.decisions.count > max(1, attempt + (attempt > 0 && entry.cancellations > 0 ? 1 : 0))
                {
                    found.append(
                        "\(entry.decisions.count) calls of the handler in \(entry.attempt ?? 0) attempts")
                }
                if let told = entry.outcomes.first?.time, entry.decisions.contains(where: { $0 > told }) {
                    found.append("its handler was called after its outcome was told")
                }
            }
            found += objectionsToChildren(of: entry, ending)
        }
        for epoch in entry.children { found += objectionsToOrder(of: epoch, composite) }
        return found
    }

    private func objectionsToChildren(of entry: Operation, _ ending: ModelEnding) -> [String] {
        // The handle of a child may have been dropped while that of its composite, which was recorded later, was not.
        let children = (entry.children.last ?? []).map { operations[$0] }.filter { !$0.isForgotten }
            .map { (id: $0.node.id, ending: $0.ending ?? $0.outcomes.first?.ending) }
            .filter { $0.ending != .refused }
        let isAnyUnknown = children.contains { $0.ending == nil }
        switch ending {
        case .finished:
            return children.filter { $0.ending?.isFinished == false }.map {
                "its child #\($0.id) did not finish"
            }
        case .failed(let node):
            let isChilds = children.contains { $0.ending == ending }
            return isChilds || isAnyUnknown || node == entry.node.id ? [] : ["no child failed so"]
        case .cancelled(.child):
            let isChilds = children.contains {
                if case .cancelled(let kind)? = $0.ending { kind != .parent } else { false }
            }
            return isChilds || isAnyUnknown ? [] : ["no child was cancelled"]
        default: return []
        }
    }

    private func objectionsToOrder(of epoch: [Int], _ composite: TreePlan.Composite) -> [String] {
        let runs = epoch.map { blocks(below: $0) }
        if let width = composite.transaction {
            let count = most(runs.map { $0.map { ($0.begin, $0.end ?? $0.returned ?? .max) } })
            return count > width.limit ?? .max ? ["\(count) children at once"] : []
        }
        var last = 0
        for (child, blocks) in zip(epoch, runs) {
            if let first = blocks.map(\.begin).min(), first < last {
                return ["its child #\(operations[child].node.id) began before an earlier one had ended"]
            }
            last = max(last, blocks.map { $0.end ?? $0.returned ?? .max }.max() ?? 0)
        }
        return []
    }

    private func blocks(below index: Int) -> [Block] {
        operations[index].blocks + operations[index].children.joined().flatMap { blocks(below: $0) }
    }

    /// The maximum number of sets that have an interval open at the same time.
    private func most(_ sets: [[(begin: Int, end: Int)]]) -> Int {
        var events: [(time: Int, set: Int, change: Int)] = []
        for (set, intervals) in sets.enumerated() {
            for (begin, end) in intervals { events += [(begin, set, 1), (end, set, -1)] }
        }
        var open: [Int: Int] = [:]
        var most = 0
        for event in events.sorted(by: { $0.time < $1.time }) {
            open[event.set, default: 0] += event.change
            if open[event.set] == 0 { open[event.set] = nil }
            most = max(most, open.count)
        }
        return most
    }
}
