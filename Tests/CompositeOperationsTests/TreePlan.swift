// TreePlan.swift - what a random tree of operations is to do: a value, built from the choices of a tape. TreeRun.swift
// executes it, TreeModel.swift predicts the result.

import CompositeOperationsTestSupport
import PropertyTesting

/// Trees, the commands for them, and the order in which a single thread runs their work.
struct TreePlan: Sendable {
    var roots: [Node]
    var queue: QueuePlan?
    /// Each root waits for its predecessor to end.
    var isChained = false
    var commands: [Command] = []
    /// The test releases all handles as soon as the roots are started.
    var dropsHandles = false
    /// In virtual time: which pending piece of work runs next. When the list is exhausted, the oldest one does.
    var schedule: [Int] = []

    struct Node: Sendable {
        /// Its place in the order of declaration.
        var id = 0
        var body: Body
        var target = Target.inherited
        /// Whether the run observes its outcome.
        var isWatched = false
        /// Made in advance, and then added.
        var isReadyMade = false
        /// Its gate was closed before it was added, and is opened later.
        var wasSuspended = false
    }

    enum Body: Sendable {
        case leaf(Leaf)
        case composite(Composite)
    }

    enum Target: String, Sendable { case inherited, lane, serial, concurrent }

    // MARK: Leaves

    struct Leaf: Sendable {
        var form = Form.token
        /// The results of its runs in sequence, counted across the attempts of the enclosing composites. The last one
        /// repeats for ever.
        var steps: [Step] = [.finish]
        /// The end comes from elsewhere, possibly after the block has returned.
        var isLater = false
        var suspension = Suspension.none
        /// The nodes that each run registers as siblings.
        var late: [Node] = []
        var resolver: Resolver?
        /// Whether it pauses before a rerun, and before a redo by the resolver.
        var pauses = false
        /// Has a timeout for the whole operation, which then never ends by itself.
        var isTimed = false
    }

    enum Form: String, Sendable {
        case token, value, async
        /// Like `value`, but without target and options. It has no object until one is needed.
        case plain
    }

    enum Step: String, Sendable {
        case finish, fail, cancel, throwsError, throwsCancellation, rerun, never
        var isGood: Bool { self == .finish || self == .rerun }
    }

    /// Whether a successful run closes the leaf's gate before it ends.
    enum Suspension: String, Sendable {
        case none
        /// Closes the gate, and finishes behind it.
        case ends
        /// Closes the gate, which is opened later.
        case isOpened
    }

    // MARK: Composites

    struct Composite: Sendable {
        /// nil: a cascade.
        var transaction: Width?
        var children: [Node] = []
        var handler: Handler?
        var resolver: Resolver?
        /// How many runs of its block, counted from the first, throw at their end.
        var throwing = 0
        /// Its block closes its gate, which is opened later.
        var suspends = false
        /// The composite has a completion closure.
        var hasCompletion = false
    }

    struct Width: Sendable { var limit: Int? }

    /// Takes `decision` while the attempt number is less than `below`; after that it leaves the decision to the
    /// default.
    struct Handler: Sendable {
        var decision: Decision
        var below: Int
    }

    enum Decision: Sendable {
        case nothing, cancel, awake, deferredAwake, rerun, pausedRerun
        case resolve(Resolver)
    }

    struct Resolver: Sendable {
        var maxAttempts = 1
        var reruns = false
        /// If set, a user's predicate decides. It declines from this attempt on.
        var refusesFrom: Int?
        var pauses = false
        var fallback = Fallback.none
    }

    enum Fallback: String, Sendable { case none, undecided, cancel, finish }

    // MARK: Queues and commands

    struct QueuePlan: Sendable {
        enum Order: String, Sendable { case fifo, lifo, aggressiveLIFO }
        var order = Order.fifo
        var running = 1
        var pending: Int?
        var holds = false
        /// Roots are added to the queue instead of being created for it.
        var adds = false
    }

    struct Command: Sendable {
        enum What: String, Sendable {
            case cancel, suspend, resume, restart, rerun, awake
            case suspendQueue, resumeQueue, cancelAll, removePending, narrow, widen
        }
        var what: What
        /// The id of the node.
        var node: Int
        /// The leaf whose block issues the command. nil: it comes from outside.
        var inside: Int?
        /// The thread that issues the command.
        var thread = 0
        /// The delay before it, in yields, or in steps of virtual time.
        var delay = 0
    }
}

// MARK: - Queries

extension TreePlan {
    /// All declared nodes.
    var nodes: [Node] { roots.flatMap(\.all) }

    var hasPauses: Bool {
        nodes.contains { node in
            switch node.body {
            case .leaf(let leaf): leaf.pauses || leaf.isTimed || leaf.resolver?.pauses == true
            case .composite(let composite): composite.pauses
            }
        }
    }

    /// Whether anything closes a gate.
    var suspends: Bool {
        nodes.contains { node in
            if node.wasSuspended { return true }
            switch node.body {
            case .leaf(let leaf): return leaf.suspension != .none
            case .composite(let composite): return composite.suspends
            }
        }
    }
}

extension TreePlan.Node {
    var all: [TreePlan.Node] {
        switch body {
        case .leaf(let leaf): [self] + leaf.late.flatMap(\.all)
        case .composite(let composite): [self] + composite.children.flatMap(\.all)
        }
    }

    var composite: TreePlan.Composite? { if case .composite(let composite) = body { composite } else { nil } }
    var leaf: TreePlan.Leaf? { if case .leaf(let leaf) = body { leaf } else { nil } }

    /// The value of its operation, if it has one: the id of a leaf.
    var value: Int? {
        switch body {
        case .leaf: id
        case .composite(let composite): composite.children.last { $0.value != nil }?.value
        }
    }
}

extension TreePlan.Composite {
    var pauses: Bool {
        if resolver?.pauses == true { return true }
        switch handler?.decision {
        case .pausedRerun: return true
        case .resolve(let resolver): return resolver.pauses
        default: return false
        }
    }
}

extension TreePlan.Leaf {
    /// - Parameter run: counted from 1.
    func step(_ run: Int) -> TreePlan.Step { steps[min(run, steps.count) - 1] }
}

// MARK: - As text

extension TreePlan: CustomStringConvertible {
    var description: String {
        var lines = roots.map { $0.lines.joined(separator: "\n") }
        if isChained { lines.append("each root waits for the one before") }
        if let queue {
            lines.append(
                "in a queue: \(queue.order), running \(queue.running)"
                    + (queue.pending.map { ", pending \($0)" } ?? "")
                    + (queue.holds ? ", holds slots" : "") + (queue.adds ? ", added" : ""))
        }
        if dropsHandles { lines.append("all handles are dropped") }
        lines += commands.map(\.description)
        if schedule.contains(where: { $0 != 0 }) { lines.append("schedule \(schedule)") }
        return "\n" + lines.joined(separator: "\n")
    }
}

extension TreePlan.Command: CustomStringConvertible {
    var description: String {
        let place = inside.map { "in a block of #\($0)" } ?? "from thread \(thread), after \(delay)"
        return "command: \(what) #\(node) \(place)"
    }
}

extension TreePlan.Node {
    fileprivate var lines: [String] {
        var words = ["#\(id)"]
        var below: [TreePlan.Node] = []
        switch body {
        case .leaf(let leaf):
            words.append(leaf.form == .token ? "leaf" : "\(leaf.form) leaf")
            words.append(leaf.steps.map(\.rawValue).joined(separator: ", "))
            if leaf.isLater { words.append("later") }
            if leaf.suspension != .none { words.append("suspended, \(leaf.suspension)") }
            if let resolver = leaf.resolver { words.append("resolver \(resolver)") }
            if leaf.pauses { words.append("pauses") }
            if leaf.isTimed { words.append("timed") }
            if !leaf.late.isEmpty { words.append("registers late") }
            below = leaf.late
        case .composite(let composite):
            if let width = composite.transaction {
                words.append("transaction" + (width.limit.map { " of width \($0)" } ?? ""))
            } else {
                words.append("cascade")
            }
            if let handler = composite.handler {
                words.append("decides \(handler.decision) below attempt \(handler.below)")
            }
            if let resolver = composite.resolver { words.append("resolver \(resolver)") }
            if composite.throwing > 0 { words.append("throws \(composite.throwing) times") }
            if composite.suspends { words.append("suspends itself") }
            if composite.hasCompletion { words.append("has a completion") }
            below = composite.children
        }
        if target != .inherited { words.append("on \(target)") }
        if isWatched { words.append("watched") }
        if isReadyMade { words.append("ready-made") }
        if wasSuspended { words.append("suspended before") }
        return [words.joined(separator: " | ")] + below.flatMap(\.lines).map { "    " + $0 }
    }
}

extension TreePlan.Resolver: CustomStringConvertible {
    var description: String {
        "(max \(maxAttempts), \(reruns ? "rerun" : "awake")" + (refusesFrom.map { ", no from \($0)" } ?? "")
            + (pauses ? ", pauses" : "") + (fallback == .none ? ")" : ", fallback \(fallback))")
    }
}

// MARK: - Generators

extension TreePlan {
    /// The optional parts of a plan, in addition to the parts that every plan may have.
    struct Kinds: Sendable {
        var hasCommands = false
        var hasQueue = false
        /// Pauses and timeouts take no time.
        var isVirtual = false
    }

    static func plans(_ kinds: Kinds) -> Generator<TreePlan> {
        Generator { source in
            var growth = Growth(kinds: kinds)
            var plan = TreePlan(roots: [])
            let rootCount = kinds.hasQueue ? 1 + Int(source.draw(below: 3)) : 1
            for _ in 0..<rootCount { plan.roots.append(growth.root(&source)) }
            if rootCount > 1 { plan.isChained = source.isOne(in: 5) }
            if kinds.hasQueue { plan.queue = growth.queue(&source) }
            for index in plan.roots.indices { plan.roots[index].number(&growth.lastID) }
            if kinds.hasCommands {
                let nodes = plan.nodes
                let command = Generator<Command> { Growth.command(&$0, nodes, in: kinds) }
                plan.commands = try command.array(count: 0...6).value(from: &source)
            }
            // A run that has released its handles can no longer open a gate.
            if !plan.suspends, plan.commands.isEmpty { plan.dropsHandles = source.isOne(in: 6) }
            if kinds.isVirtual {
                plan.schedule = try Generator<[Int]>.array(of: .int(in: 0...7), count: 0...40).value(
                    from: &source)
            }
            return plan
        }
    }
}

extension TreePlan.Node {
    fileprivate mutating func number(_ last: inout Int) {
        last += 1
        id = last
        switch body {
        case .leaf(var leaf):
            for index in leaf.late.indices { leaf.late[index].number(&last) }
            body = .leaf(leaf)
        case .composite(var composite):
            for index in composite.children.indices { composite.children[index].number(&last) }
            body = .composite(composite)
        }
    }
}

extension Source {
    /// False is the simpler choice.
    fileprivate mutating func isOne(in count: UInt64) -> Bool { draw(below: count) == count - 1 }

    /// Each of `others` has one chance in `total`. The first choice is the simplest, and gets the rest.
    fileprivate mutating func pick<Value>(of total: UInt64, _ first: Value, _ others: Value...) -> Value {
        let choice = Int(draw(below: total)) - (Int(total) - others.count)
        return choice < 0 ? first : others[choice]
    }
}

private struct Growth: Sendable {
    let kinds: TreePlan.Kinds
    var lastID = 0
    /// How many more nodes may be drawn.
    var budget = 14

    init(kinds: TreePlan.Kinds) { self.kinds = kinds }

    mutating func root(_ source: inout Source) -> TreePlan.Node {
        source.span { source in
            source.draw(below: 8) == 0 ? leafNode(&source, isRoot: true) : compositeNode(&source, depth: 0)
        }
    }

    private mutating func child(_ source: inout Source, depth: Int) -> TreePlan.Node {
        var node =
            source.draw(below: 10) >= (depth < 3 ? 7 : 10)
            ? compositeNode(&source, depth: depth) : leafNode(&source, isRoot: false)
        if source.isOne(in: 8) {
            switch node.body {
            case .leaf(let leaf): node.isReadyMade = leaf.form == .token
            // A ready-made composite has no closures, and needs a value.
            case .composite(let composite):
                node.isReadyMade = composite.handler == nil && !composite.hasCompletion && node.value != nil
            }
            if node.isReadyMade { node.wasSuspended = source.isOne(in: 4) }
        }
        return node
    }

    private mutating func placed(_ body: TreePlan.Body, _ source: inout Source) -> TreePlan.Node {
        budget -= 1
        return TreePlan.Node(
            body: body, target: source.pick(of: 6, .inherited, .lane, .serial, .concurrent),
            isWatched: source.draw(below: 3) != 0)
    }

    // MARK: Leaves

    private mutating func leafNode(_ source: inout Source, isRoot: Bool) -> TreePlan.Node {
        var leaf = TreePlan.Leaf()
        leaf.steps = steps(&source)
        if !isRoot { leaf.form = source.pick(of: 7, .token, .value, .async, .plain, .plain) }
        if leaf.form != .plain, source.isOne(in: 6) { leaf.resolver = resolver(&source, ofLeaf: true) }
        if leaf.form == .token {
            leaf.isLater = source.isOne(in: 4)
            leaf.suspension = source.pick(of: 10, .none, .ends, .isOpened)
            leaf.pauses = source.isOne(in: 4)
            if !isRoot, source.isOne(in: 8) { leaf.late = [lateNode(&source)] }
            if source.isOne(in: kinds.isVirtual ? 12 : 20) {
                leaf.isTimed = true
                leaf.steps[leaf.steps.count - 1] = .never
            }
        } else {
            leaf.steps = leaf.steps.map { step in
                switch step {
                case .fail, .rerun: .throwsError
                case .cancel: .throwsCancellation
                default: step
                }
            }
        }
        return placed(.leaf(leaf), &source)
    }

    private mutating func lateNode(_ source: inout Source) -> TreePlan.Node {
        placed(.leaf(TreePlan.Leaf()), &source)
    }

    private func steps(_ source: inout Source) -> [TreePlan.Step] {
        var steps: [TreePlan.Step] = []
        for _ in 0..<source.draw(below: 4) / 2 * (1 + source.draw(below: 2)) {
            steps.append(source.pick(of: 4, .rerun, .fail, .cancel, .throwsError))
        }
        steps.append(source.pick(of: 12, .finish, .fail, .cancel, .throwsError, .throwsCancellation))
        return steps
    }

    private func resolver(_ source: inout Source, ofLeaf: Bool) -> TreePlan.Resolver {
        var resolver = TreePlan.Resolver(maxAttempts: 1 + Int(source.draw(below: 4)))
        resolver.reruns = !ofLeaf && source.draw(below: 2) == 1
        if source.isOne(in: 3) { resolver.refusesFrom = 1 + Int(source.draw(below: 3)) }
        resolver.pauses = source.isOne(in: 4)
        resolver.fallback =
            ofLeaf
            ? source.pick(of: 6, .none, .undecided, .cancel, .finish)
            : source.pick(of: 6, .none, .undecided, .cancel)
        return resolver
    }

    // MARK: Composites

    private mutating func compositeNode(_ source: inout Source, depth: Int) -> TreePlan.Node {
        var composite = TreePlan.Composite()
        if source.draw(below: 2) == 1 {
            composite.transaction = TreePlan.Width(limit: source.pick(of: 4, nil, 1, 2))
        }
        while budget > 0, composite.children.count < 4 {
            let next: TreePlan.Node? = source.span { source in
                source.draw(below: 5) == 0 ? nil : child(&source, depth: depth + 1)
            }
            guard let next else { break }
            composite.children.append(next)
        }
        if source.draw(below: 3) == 2 { composite.handler = handler(&source) }
        if source.isOne(in: 6) { composite.resolver = resolver(&source, ofLeaf: false) }
        if source.isOne(in: 10) { composite.throwing = 1 + Int(source.draw(below: 2)) }
        if composite.throwing == 0 { composite.suspends = source.isOne(in: 10) }
        composite.hasCompletion = source.draw(below: 2) == 1
        var node = placed(.composite(composite), &source)
        // Watched, because the run must wait for its closures.
        if composite.handler != nil || composite.hasCompletion { node.isWatched = true }
        return node
    }

    private func handler(_ source: inout Source) -> TreePlan.Handler {
        let decision: TreePlan.Decision =
            switch source.draw(below: 9) {
            case 0: .nothing
            case 1: .cancel
            case 2, 3: .awake
            case 4: .deferredAwake
            case 5: .rerun
            case 6: .pausedRerun
            default: .resolve(resolver(&source, ofLeaf: false))
            }
        return TreePlan.Handler(decision: decision, below: 2 + Int(source.draw(below: 3)))
    }

    // MARK: Queues and commands

    func queue(_ source: inout Source) -> TreePlan.QueuePlan {
        var queue = TreePlan.QueuePlan()
        queue.order = source.pick(of: 3, .fifo, .lifo, .aggressiveLIFO)
        queue.running = 1 + Int(source.draw(below: 3))
        if source.isOne(in: 4) { queue.pending = Int(source.draw(below: 3)) }
        queue.holds = source.isOne(in: 4)
        queue.adds = source.draw(below: 2) == 1
        return queue
    }

    static func command(
        _ source: inout Source, _ nodes: [TreePlan.Node], in kinds: TreePlan.Kinds
    ) -> TreePlan.Command {
        let what: TreePlan.Command.What =
            kinds.hasQueue && source.draw(below: 3) == 2
            ? source.pick(of: 6, .resumeQueue, .suspendQueue, .cancelAll, .removePending, .narrow, .widen)
            : source.pick(of: 9, .suspend, .resume, .resume, .cancel, .cancel, .restart, .rerun, .awake)
        var command = TreePlan.Command(
            what: what, node: nodes[Int(source.draw(below: UInt64(nodes.count)))].id)
        let leaves = nodes.filter { $0.leaf?.form == .token }
        if source.isOne(in: 4), !leaves.isEmpty {
            command.inside = leaves[Int(source.draw(below: UInt64(leaves.count)))].id
        }
        command.thread = Int(source.draw(below: 2))
        command.delay = Int(source.draw(below: kinds.isVirtual ? 40 : 8))
        return command
    }
}
