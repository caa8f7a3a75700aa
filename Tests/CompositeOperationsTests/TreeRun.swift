// TreeRun.swift - executes a TreePlan in a given environment and records what happened.
//
// The blocks and handlers make the record themselves. Each takes a timestamp, an increasing number, when it begins and
// just before it ends something. Hence the order of two recorded times is the order in which the program did the two
// things.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import Glibc
import PropertyTesting
import Synchronization

/// The environment in which trees run.
protocol TreeEnvironment: Sendable {
    func target(_ target: TreePlan.Target) -> (any ExecutionTarget)?
    /// nil: handlers run on their default target.
    var handlerTarget: (any ExecutionTarget)? { get }
    /// The target of the plan's queue.
    var queueTarget: (any ExecutionTarget)? { get }
    /// For pauses and timeouts. nil: pauses are short, and an operation that never ends is cancelled from elsewhere.
    var clock: (any Clock<Duration>)? { get }
    func nextPause() -> Duration
    /// Runs `body` elsewhere, outside any operation.
    func later(_ body: @escaping @Sendable () -> Void)
    /// Whether one thread does everything. If so, the state that a block sees when it begins is the state at its turn.
    var isSingleThreaded: Bool { get }
}

/// The record of a run.
struct TreeRecord: Sendable {
    /// One operation.
    struct Operation: Sendable {
        var node: TreePlan.Node
        var parent: Int?
        /// The run of the enclosing composite's block that registered this operation.
        var epoch = 0
        /// Rejected by its composite, and never started.
        var isForgotten = false
        var hasClosures = true
        var blocks: [Block] = []
        /// The children registered by each run of its block.
        var children: [[Int]] = []
        /// The outcomes that `onOutcome` delivered, with their times.
        var outcomes: [(ending: ModelEnding, time: Int)] = []
        /// The ending according to the handle, read when the run is over. nil: the handle no longer exists.
        var ending: ModelEnding?
        var attempt: Int?
        var numberOfRuns: Int?
        var decisions: [Int] = []
        var completions = 0
        /// Whether `cancel` was called; how many calls returned true; and how many of these gave a reason, which takes
        /// effect even while a decision is open.
        var isCancelAsked = false
        var cancellations = 0
        var reasons = 0
    }

    struct Block: Sendable {
        /// nil: the block does not know its attempt.
        var attempt: Int?
        var begin: Int
        /// Taken just before the call that ended the attempt.
        var end: Int?
        /// Taken just before the block returned.
        var returned: Int?
    }

    var operations: [Operation] = []
    /// The violations seen during the run.
    var objections: [String] = []
}

/// Counts itself as live. Every closure of a run holds one.
private final class Mark: Sendable {
    private let live: Count
    init(_ live: Count) {
        self.live = live
        live.add()
    }
    deinit { live.add(-1) }
}

final class TreeRun: Sendable {
    /// Totals of trees, commands and blocks in this process.
    static let trees = Count()
    static let commands = Count()
    static let blocks = Count()

    /// Facts about one operation that are not part of the record.
    private struct Known {
        var handle: AnyOperation?
        weak var weakHandle: AnyOperation?
        var isMade = false
        /// The child, while it has no object yet.
        var plain: Child<Int>?
        /// Reads its result.
        var ending: (@Sendable () -> ModelEnding?)?
    }

    private struct State {
        var record = TreeRecord()
        var known: [Known] = []
        /// By node: the number of blocks begun, and the newest operation.
        var runs: [Int: Int] = [:]
        var newest: [Int: Int] = [:]
        /// The pauses that were decided, each before the given attempt.
        var pauses: [(operation: Int, attempt: Int)] = []
        /// Per cancellation: how many blocks of the operation and its descendants had begun when `cancel` returned.
        var begunAtCancel: [(operation: Int, runs: Int)] = []
        /// The number of outcomes still to be delivered, plus one until all roots have been started.
        var outstanding = 1
    }

    let plan: TreePlan
    let environment: any TreeEnvironment
    let queue: COOperationQueue?
    /// Opens when every outcome has been delivered.
    let isOver = Gate()
    private let state = Locked(State())
    private let time = Atomic(0)
    private let live = Count()

    init(_ plan: TreePlan, on environment: any TreeEnvironment) {
        self.plan = plan
        self.environment = environment
        queue = plan.queue.map { queue in
            COOperationQueue(
                queue.order == .fifo ? .fifo : queue.order == .lifo ? .lifo : .aggressiveLIFO,
                runningLimit: queue.running, pendingLimit: queue.pending,
                slots: queue.holds ? .holdWhileSuspended : .releaseWhileSuspended, on: environment.queueTarget
            )
        }
    }

    // MARK: Times

    private func now() -> Int { time.add(1, ordering: .sequentiallyConsistent).newValue }

    func object(_ text: String) { state.withLock { $0.record.objections.append(text) } }

    private func change<Answer>(_ operation: Int, _ body: (inout TreeRecord.Operation) -> Answer) -> Answer {
        state.withLock { body(&$0.record.operations[operation]) }
    }

    /// - Parameter makesObject: whether a plain child without an object is given one.
    func handle(_ operation: Int, makesObject: Bool = false) -> AnyOperation? {
        let (handle, plain) = state.withLock { ($0.known[operation].handle, $0.known[operation].plain) }
        if handle == nil, makesObject, let plain { return madeOperation(operation, plain) }
        return handle
    }

    /// Makes the object of a plain child, unless it exists already.
    @discardableResult
    private func madeOperation(_ operation: Int, _ plain: Child<Int>) -> AnyOperation {
        let made = plain.operation
        state.withLock { state in
            guard state.known[operation].plain != nil else { return }  // everything was released
            (state.known[operation].handle, state.known[operation].weakHandle) = (made, made)
        }
        return made
    }

    private func node(_ operation: Int) -> TreePlan.Node {
        state.withLock { $0.record.operations[operation].node }
    }

    // MARK: Creating operations

    /// Records an operation that is about to be made.
    private func enter(_ node: TreePlan.Node, in parent: Int?, epoch: Int) -> Int {
        state.withLock { state in
            let operation = state.record.operations.count
            state.record.operations.append(TreeRecord.Operation(node: node, parent: parent, epoch: epoch))
            state.known.append(Known())
            state.newest[node.id] = operation
            if let parent { state.record.operations[parent].children[epoch].append(operation) }
            if node.isWatched { state.outstanding += 1 }
            return operation
        }
    }

    /// Records the handle, and observes its outcome if the node is watched.
    private func made<Value>(_ operation: Int, _ handle: OperationHandle<Value>) {
        let isWatched = state.withLock { state in
            state.known[operation] = Known(
                handle: handle, weakHandle: handle, isMade: true, ending: { handle.result.map(Self.ending) })
            return state.record.operations[operation].node.isWatched
        }
        guard isWatched else { return }
        handle.onOutcome { [self, mark = Mark(live)] outcome in
            withExtendedLifetime(mark) { told(operation, Self.ending(outcome)) }
        }
    }

    /// Records a child without an object. Observing it, if the node is watched, makes the object.
    private func made(_ operation: Int, plain: Child<Int>) {
        let isWatched = state.withLock { state in
            state.known[operation] = Known(
                isMade: true, plain: plain, ending: { plain.result.map(Self.ending) })
            return state.record.operations[operation].node.isWatched
        }
        guard isWatched else { return }
        madeOperation(operation, plain)
        plain.onOutcome { [self, mark = Mark(live)] outcome in
            withExtendedLifetime(mark) { told(operation, Self.ending(outcome)) }
        }
    }

    private func forget(_ operation: Int) {
        let isWatched = state.withLock { state in
            state.record.operations[operation].isForgotten = true
            state.known[operation].handle = nil
            return state.record.operations[operation].node.isWatched
        }
        if isWatched { oneLess() }
    }

    private func oneLess() {
        let isLast = state.withLock { state in
            state.outstanding -= 1
            return state.outstanding == 0
        }
        if isLast { isOver.open() }
    }

    private func told(_ operation: Int, _ ending: ModelEnding) {
        let time = now()
        let (handle, below) = state.withLock { state in
            state.record.operations[operation].outcomes.append((ending, time))
            let below = state.record.operations[operation].children.last ?? []
            return (
                state.known[operation].handle,
                below.map { (state.known[$0].handle, state.record.operations[$0]) }
            )
        }
        if let handle, !handle.isEnded { object("\(handle) was told of its outcome before it had ended") }
        for (child, entry) in below where !entry.isForgotten {
            if let child, !child.isEnded {
                object("\(child) had not ended when its composite's outcome was told")
            }
        }
        oneLess()
    }

    private static func ending<Value>(_ outcome: Outcome<Value>) -> ModelEnding {
        switch outcome {
        case .finished(let value): return .finished(value as? Int ?? 0)
        case .failed(let error as TestError): return .failed(node: error.number)
        case .failed: return .refused
        case .cancelled(let reason): return .cancelled(kind(reason))
        }
    }

    private static func kind(_ reason: CancelReason) -> ModelEnding.CancelKind {
        switch reason.kind {
        case .requested: .requested
        case .child: .child
        case .parent: .parent
        case .displaced: .displaced
        case .queueFull: .queueFull
        case .removed: .removed
        case .timedOut: .timedOut
        case .threwCancellation: .threw
        case .taskCancelled: .task
        case .exhausted: .exhausted
        default: .other
        }
    }

    private func options(_ operation: Int, _ node: TreePlan.Node) -> OperationOptions {
        var options = OperationOptions(name: "\(node.id)", handlerTarget: environment.handlerTarget)
        if let clock = environment.clock { options.clock = clock }
        switch node.body {
        case .leaf(let leaf):
            if !node.isWatched, leaf.resolver == nil, !leaf.isTimed, !leaf.pauses { return .standard }
            options.resolver = leaf.resolver.map { resolver(operation, $0) }
            // This timeout is longer than all pauses.
            if leaf.isTimed, environment.clock != nil { options.timeout = .seconds(1_000_000 + node.id) }
        case .composite(let composite):
            options.width = composite.transaction?.limit
            options.resolver = composite.resolver.map { resolver(operation, $0) }
        }
        return options
    }

    private func resolver(_ operation: Int, _ plan: TreePlan.Resolver) -> COOperationResolver {
        let mark = Mark(live)
        let pause: @Sendable (Int) -> Duration = { [self] attempt in
            withExtendedLifetime(mark) { pauseIsDecided(operation, attempt + 1) }
            return environment.nextPause()
        }
        let fallback: @Sendable (AnyOperation) -> Void = { [self] handle in
            withExtendedLifetime(mark) { fallBack(plan.fallback, operation, handle) }
        }
        var retryIf: (@Sendable (Cause) -> Bool)?
        if let from = plan.refusesFrom {
            retryIf = { [self] _ in withExtendedLifetime(mark) { attempt(operation) < from } }
        }
        return COOperationResolver(
            maxAttempts: plan.maxAttempts, backoff: plan.pauses ? .custom(pause) : .none,
            redo: plan.reruns ? .rerun : .awake, clock: environment.clock ?? ContinuousClock(),
            retryIf: retryIf,
            fallback: plan.fallback == .none ? nil : fallback)
    }

    /// Works after the handles have been dropped, too. A child may fail before the call that registers it has returned;
    /// this function then waits until the child is recorded.
    private func attempt(_ operation: Int) -> Int {
        while !state.withLock({ $0.known[operation].isMade }) { sched_yield() }
        return state.withLock { $0.known[operation].weakHandle }?.attempt ?? 0
    }

    private func fallBack(_ fallback: TreePlan.Fallback, _ operation: Int, _ handle: AnyOperation) {
        switch fallback {
        case .none, .undecided: break
        case .cancel: cancel(operation) { handle.cancel() }
        case .finish: (handle as? COOperation<Int>)?.finish(node(operation).id)
        }
    }

    private func pauseIsDecided(_ operation: Int, _ attempt: Int) {
        state.withLock { $0.pauses.append((operation, attempt)) }
    }

    /// How many timers of each kind are running, judging by the states of the operations. An upper bound: it may
    /// include operations that are waiting for an enclosing one.
    var timers: (pauses: Int, timeouts: Int) {
        let (pauses, timed) = state.withLock { state in
            (
                state.pauses.map { (state.known[$0.operation].weakHandle, $0.attempt) },
                zip(state.record.operations, state.known)
                    .filter { $0.0.node.leaf?.isTimed == true }.map(\.1.weakHandle)
            )
        }
        let paused = pauses.count { handle, attempt in handle?.state == .delayed && handle?.attempt == attempt
        }
        return (
            paused, timed.compactMap { $0?.state }.count { $0 != .ready && $0 != .ending && !$0.isTerminal }
        )
    }

    /// Whether anything waits for time to pass.
    var waitsForTime: Bool {
        timers != (0, 0)
            || state.withLock { state in state.known.compactMap(\.weakHandle) }.contains {
                $0.state == .delayed
            }
    }

    /// The number of decided operations, the number waiting between attempts, and the sum of all attempt numbers. An
    /// expired timer that has taken effect changes at least one of them.
    var progress: [Int] {
        let handles = state.withLock { state in state.known.compactMap(\.weakHandle) }
        let states = handles.map(\.state)
        return [
            states.count { $0 == .ending || $0.isTerminal }, states.count { $0 == .delayed },
            handles.reduce(0) { $0 + $1.attempt },
        ]
    }

    // MARK: Blocks

    /// The data that a block has about itself.
    private struct Entered {
        let operation: Int
        let block: Int
        /// The ordinal of this run among all runs of the node.
        let run: Int
    }

    private func begin(_ operation: Int, _ handle: AnyOperation?, attempt: Int?) -> Entered {
        let time = now()
        Self.blocks.add()
        let (entered, id, waitsFor, earlier) = state.withLock { state in
            let entry = state.record.operations[operation]
            let id = entry.node.id
            state.record.operations[operation].blocks.append(TreeRecord.Block(attempt: attempt, begin: time))
            state.runs[id, default: 0] += 1
            let entered = Entered(operation: operation, block: entry.blocks.count, run: state.runs[id]!)
            let roots = state.record.operations.indices.filter { state.record.operations[$0].parent == nil }
            let waitsFor = plan.isChained ? roots.last { $0 < operation } : nil
            var earlier: [AnyOperation?] = []
            if let parent = entry.parent, state.record.operations[parent].node.composite?.transaction == nil {
                let siblings = state.record.operations[parent].children[entry.epoch]
                earlier = siblings.prefix { $0 != operation }.map { state.known[$0].handle }
            }
            return (
                entered, id, entry.parent == nil ? waitsFor.flatMap { state.known[$0].handle } : nil, earlier
            )
        }
        if let waitsFor, !waitsFor.isEnded { object("\(id) began before the root before it had ended") }
        if environment.isSingleThreaded {
            if let handle, handle.isSuspended { object("a block of #\(id) began behind a closed gate") }
            if let handle, handle.state == .ending || handle.isEnded {
                object("a block of #\(id) began after its end")
            }
            // If the composite continues although an earlier sibling has ended without finishing, it had refused that
            // sibling.
            if earlier.contains(where: { $0.map { !$0.isFinished && !$0.isEnded } ?? false }) {
                object("#\(id) began out of turn")
            }
        }
        // Only in some runs: otherwise a rerun would repeat for ever.
        for command in plan.commands where command.inside == id && entered.run == 1 + command.delay % 2 {
            perform(command)
        }
        return entered
    }

    /// - Parameter call: returns true if it ended the attempt.
    private func end(_ entered: Entered, _ call: () -> Bool) {
        let time = now()
        guard call() else { return }
        change(entered.operation) { $0.blocks[entered.block].end = time }
    }

    private func returns(_ entered: Entered) {
        let time = now()
        change(entered.operation) { $0.blocks[entered.block].returned = time }
    }

    private func leafBlock(
        _ operation: Int, _ leaf: TreePlan.Leaf, _ scope: (any CompositeScope)?, _ epoch: Int
    ) -> COOperation<Int>.Block {
        { [self, mark = Mark(live)] attempt in
            let entered = begin(operation, attempt.operation, attempt: attempt.number)
            defer { withExtendedLifetime(mark) { returns(entered) } }
            if let scope, let parent = state.withLock({ $0.record.operations[operation].parent }) {
                for node in leaf.late { _ = register(node, in: scope, of: parent, epoch: epoch) }
            }
            let step = leaf.step(entered.run)
            let suspension = step == .rerun && leaf.suspension != .none ? .isOpened : leaf.suspension
            let suspends = step.isGood && suspension != .none
            if suspends { attempt.suspend() }
            if leaf.isLater || step == .never {
                environment.later { [self] in
                    withExtendedLifetime(mark) {
                        if suspends, suspension == .isOpened { attempt.operation.resume() }
                        try? perform(step, entered, leaf, attempt, isThrowing: false)
                    }
                }
            } else {
                if suspends, suspension == .isOpened {
                    environment.later { withExtendedLifetime(mark) { _ = attempt.operation.resume() } }
                }
                try perform(step, entered, leaf, attempt, isThrowing: true)
            }
        }
    }

    private func perform(
        _ step: TreePlan.Step, _ entered: Entered, _ leaf: TreePlan.Leaf, _ attempt: COOperation<Int>.Attempt,
        isThrowing: Bool
    ) throws {
        let id = node(entered.operation).id
        switch step {
        case .finish: end(entered) { attempt.finish(id) }
        case .throwsError where isThrowing: throw TestError(number: id)
        case .throwsCancellation where isThrowing: throw CancellationError()
        case .fail, .throwsError: end(entered) { attempt.fail(TestError(number: id)) }
        case .cancel: end(entered) { cancel(entered.operation) { attempt.cancel() } }
        case .throwsCancellation: end(entered) { attempt.cancel(CancelReason(.threwCancellation)) }
        case .rerun:
            let pause = leaf.pauses ? environment.nextPause() : .zero
            end(entered) {
                guard attempt.rerun(after: pause) else { return false }
                if leaf.pauses { pauseIsDecided(entered.operation, attempt.number + 1) }
                return true
            }
        case .never: if environment.clock == nil { end(entered) { attempt.cancel(CancelReason(.timedOut)) } }
        }
    }

    private func valueBlock(_ operation: Int, _ leaf: TreePlan.Leaf) -> @Sendable () throws -> Int {
        { [self, mark = Mark(live)] in
            let entered = begin(operation, handle(operation), attempt: nil)
            defer { withExtendedLifetime(mark) { returns(entered) } }
            return try value(entered, leaf)
        }
    }

    private func asyncBlock(_ operation: Int, _ leaf: TreePlan.Leaf) -> @Sendable () async throws -> Int {
        { [self, mark = Mark(live)] in
            // The task begins some time after the turn, so the state of the handle is not checked here.
            let entered = begin(operation, nil, attempt: nil)
            defer { withExtendedLifetime(mark) { returns(entered) } }
            await Task.yield()
            return try value(entered, leaf)
        }
    }

    private func value(_ entered: Entered, _ leaf: TreePlan.Leaf) throws -> Int {
        let id = node(entered.operation).id
        switch leaf.step(entered.run) {
        case .throwsCancellation: throw CancellationError()
        case .throwsError: throw TestError(number: id)
        default: return id
        }
    }

    /// A registration block.
    private func declare(
        _ composite: TreePlan.Composite, _ operation: Int, in scope: some CompositeScope
    ) throws -> Part? {
        let entered = begin(operation, scope.control, attempt: nil)
        defer { returns(entered) }
        let epoch = change(operation) { entry in
            entry.children.append([])
            return entry.children.count - 1
        }
        var last: Part?
        for node in composite.children {
            if let child = register(node, in: scope, of: operation, epoch: epoch) { last = child }
        }
        if composite.suspends, scope.suspend() {
            environment.later { [mark = Mark(live)] in
                withExtendedLifetime(mark) { _ = scope.control.resume() }
            }
        }
        if entered.run <= composite.throwing { throw TestError(number: node(operation).id) }
        return last
    }

    private func declare(
        _ composite: TreePlan.Composite, _ operation: Int
    ) -> @Sendable (any CompositeScope) throws -> Void {
        { [self, mark = Mark(live)] scope in
            try withExtendedLifetime(mark) { _ = try declare(composite, operation, in: scope) }
        }
    }

    private func declareValue(
        _ composite: TreePlan.Composite, _ operation: Int
    ) -> @Sendable (any CompositeScope) throws -> Results<Int> {
        { [self, mark = Mark(live)] scope in
            try withExtendedLifetime(mark) {
                // A ready-made child that is refused has no handle, and then the composite has no value either.
                switch try declare(composite, operation, in: scope) {
                case .operation(let last)?: .value(of: last)
                case .plain(let last)?: .value(of: last)
                case nil: .value(of: COOperation<Int>())
                }
            }
        }
    }

    // MARK: Children

    /// A child with a value.
    private enum Part {
        case operation(OperationHandle<Int>)
        case plain(Child<Int>)
    }

    /// - Returns: the child, if it has a value.
    private func register(
        _ node: TreePlan.Node, in scope: some CompositeScope, of parent: Int, epoch: Int
    ) -> Part? {
        let operation = enter(node, in: parent, epoch: epoch)
        let options = options(operation, node)
        let target = environment.target(node.target)
        if node.isReadyMade {
            guard let child = readyMade(node, operation, target, options, scope, epoch) else { return nil }
            if node.wasSuspended { child.suspend() }
            do throws(RegistrationError) { try scope.add(child) } catch {
                forget(operation)
                return nil
            }
            made(operation, child)
            if node.wasSuspended { environment.later { _ = child.resume() } }
            return .operation(child)
        }
        switch node.body {
        case .leaf(let leaf) where leaf.form == .plain && environment.target(.inherited) == nil:
            let child = scope.operation(valueBlock(operation, leaf))
            made(operation, plain: child)
            return .plain(child)
        case .leaf(let leaf):
            let child =
                switch leaf.form {
                case .token:
                    scope.operation(
                        returning: Int.self, on: target, options: options,
                        leafBlock(operation, leaf, scope, epoch))
                case .value, .plain:
                    scope.operation(on: target, options: options, valueBlock(operation, leaf))
                case .async: scope.operation(on: target, options: options, asyncBlock(operation, leaf))
                }
            made(operation, child)
            return .operation(child)
        case .composite(let composite):
            let completion = completion(operation, composite)
            let isValued = node.value != nil
            switch (composite.transaction == nil, isValued) {
            case (true, true):
                let block = declareValue(composite, operation)
                let child = scope.cascadeOperation(
                    on: target, options: options, { try block($0) }, completion: completion,
                    cancellation: decision(operation, composite))
                made(operation, child)
                return .operation(child)
            case (false, true):
                let block = declareValue(composite, operation)
                let child = scope.transactionalOperation(
                    on: target, options: options, { try block($0) }, completion: completion,
                    cancellation: decision(operation, composite))
                made(operation, child)
                return .operation(child)
            case (true, false):
                let block = declare(composite, operation)
                made(
                    operation,
                    scope.cascadeOperation(
                        on: target, options: options, { try block($0) }, completion: completion,
                        cancellation: decision(operation, composite)))
            case (false, false):
                let block = declare(composite, operation)
                made(
                    operation,
                    scope.transactionalOperation(
                        on: target, options: options, { try block($0) }, completion: completion,
                        cancellation: decision(operation, composite)))
            }
            return nil
        }
    }

    /// Makes an operation without starting it.
    private func readyMade(
        _ node: TreePlan.Node, _ operation: Int, _ target: (any ExecutionTarget)?,
        _ options: OperationOptions,
        _ scope: (any CompositeScope)?, _ epoch: Int
    ) -> OperationHandle<Int>? {
        switch node.body {
        case .leaf(let leaf):
            return COOperation<Int>(on: target, options: options, leafBlock(operation, leaf, scope, epoch))
        case .composite(let composite):
            guard node.value != nil else { return nil }
            let block = declareValue(composite, operation)
            return composite.transaction == nil
                ? COCascade<Int>(on: target, options: options) { try block($0) }
                : COTransaction<Int>(on: target, options: options) { try block($0) }
        }
    }

    private func completion(_ operation: Int, _ composite: TreePlan.Composite) -> (@Sendable () -> Void)? {
        guard composite.hasCompletion else { return nil }
        return { [self, mark = Mark(live)] in
            withExtendedLifetime(mark) { change(operation) { $0.completions += 1 } }
        }
    }

    // MARK: Decisions

    private func decision<Value, Composite: CompositeOperation<Value>>(
        _ operation: Int, _ composite: TreePlan.Composite
    ) -> (@Sendable (Composite) -> Void)? {
        guard let handler = composite.handler else { return nil }
        return { [self, mark = Mark(live)] composite in
            withExtendedLifetime(mark) { decide(operation, handler, composite) }
        }
    }

    private func decide<Value>(
        _ operation: Int, _ handler: TreePlan.Handler, _ composite: CompositeOperation<Value>
    ) {
        let time = now()
        change(operation) { $0.decisions.append(time) }
        let attempt = composite.attempt
        guard attempt < handler.below else { return }
        switch handler.decision {
        case .nothing: break
        case .cancel: cancel(operation) { composite.cancel() }
        // On a ready composite, `awake` would start it.
        case .awake: if attempt > 0 { composite.awake() }
        case .deferredAwake:
            guard let hold = composite.deferDecision() else { return }
            environment.later { withExtendedLifetime(hold) { _ = composite.awake() } }
        case .rerun: composite.rerun()
        case .pausedRerun:
            if composite.rerun(after: environment.nextPause()) { pauseIsDecided(operation, attempt + 1) }
        case .resolve(let plan): composite.resolve(using: resolver(operation, plan))
        }
    }

    @discardableResult
    private func cancel(_ operation: Int, _ call: () -> Bool) -> Bool {
        change(operation) { $0.isCancelAsked = true }
        let isAccepted = call()
        if isAccepted { change(operation) { $0.cancellations += 1 } }
        return isAccepted
    }

    // MARK: Roots

    func start() {
        Self.trees.add()
        var last: AnyOperation?
        for node in plan.roots {
            var node = node
            node.isWatched = true
            last = start(node, after: plan.isChained ? last : nil)
        }
        if plan.dropsHandles { letGo() }
        oneLess()
    }

    private func start(_ node: TreePlan.Node, after last: AnyOperation?) -> AnyOperation? {
        let operation = enter(node, in: nil, epoch: 0)
        let options = options(operation, node)
        let composite = node.composite
        let isAdded =
            plan.queue?.adds == true && composite?.handler == nil && composite?.hasCompletion != true
            && node.value != nil
        let target: (any ExecutionTarget)? = isAdded ? nil : queue ?? environment.target(node.target)
        func prepared<Value, Handle: OperationHandle<Value>>(_ handle: Handle) -> Handle {
            made(operation, handle)
            if let last { handle.addDependency(last) }
            return handle
        }
        if isAdded || composite == nil {
            guard let handle = readyMade(node, operation, target, options, nil, 0).map({ prepared($0) })
            else { return nil }
            if let queue, isAdded {
                // An operation that the queue rejects is left without an owner, but can still be ended.
                if !queue.add(handle) { cancel(operation) { handle.cancel() } }
            } else {
                handle.start()
            }
            return handle
        }
        guard let composite else { return nil }
        let completion = completion(operation, composite)
        switch (composite.transaction == nil, node.value != nil) {
        case (true, true):
            let (block, handle) = (
                declareValue(composite, operation), prepared(COCascade<Int>(on: target, options: options))
            )
            ran(
                operation,
                handle.run(
                    { try block($0) }, completion: completion, cancellation: decision(operation, composite)))
            return handle
        case (false, true):
            let (block, handle) = (
                declareValue(composite, operation), prepared(COTransaction<Int>(on: target, options: options))
            )
            ran(
                operation,
                handle.run(
                    { try block($0) }, completion: completion, cancellation: decision(operation, composite)))
            return handle
        case (true, false):
            let (block, handle) = (
                declare(composite, operation), prepared(COCascade<Void>(on: target, options: options))
            )
            ran(
                operation,
                handle.run(
                    { try block($0) }, completion: completion, cancellation: decision(operation, composite)))
            return handle
        case (false, false):
            let (block, handle) = (
                declare(composite, operation), prepared(COTransaction<Void>(on: target, options: options))
            )
            ran(
                operation,
                handle.run(
                    { try block($0) }, completion: completion, cancellation: decision(operation, composite)))
            return handle
        }
    }

    /// An operation that was cancelled before it was started has no closures.
    private func ran(_ operation: Int, _ isAccepted: Bool) {
        if !isAccepted { change(operation) { $0.hasClosures = false } }
    }

    // MARK: Commands

    func perform(_ command: TreePlan.Command) {
        Self.commands.add()
        switch command.what {
        case .suspendQueue: queue?.suspend()
        case .resumeQueue: queue?.resume()
        case .cancelAll: queue?.cancelAll()
        case .removePending: queue?.removeAllPending()
        case .narrow: queue?.runningLimit = 1
        case .widen: queue?.runningLimit = nil
        default: break
        }
        guard let operation = state.withLock({ $0.newest[command.node] }),
            let handle = handle(operation, makesObject: true)
        else { return }
        switch command.what {
        case .cancel:
            guard cancel(operation, { handle.cancel(CancelReason()) }) else { return }
            change(operation) { $0.reasons += 1 }
            if !handle.isCancelled, isOutOfReach(operation) {
                object("\(handle) was cancelled, and does not say so")
            }
            if let runs = runs(below: operation) {
                state.withLock { $0.begunAtCancel.append((operation, runs)) }
            }
        case .suspend: handle.suspend()
        case .resume: handle.resume()
        case .restart: handle.resume(.restart)
        case .rerun: handle.rerun()
        case .awake:
            // On a ready operation, `awake` would start it, and starting it is up to its composite.
            guard handle.attempt > 0 else { return }
            (handle as? CompositeOperation<Int>)?.awake()
            (handle as? CompositeOperation<Void>)?.awake()
        default: break
        }
    }

    /// Whether no enclosing composite can redo anything.
    private func isOutOfReach(_ operation: Int) -> Bool {
        state.withLock { state in
            var next = state.record.operations[operation].parent
            while let one = next {
                let composite = state.record.operations[one].node.composite
                if composite?.handler != nil || composite?.resolver != nil { return false }
                next = state.record.operations[one].parent
            }
            return true
        }
    }

    /// The number of blocks begun by the operation and its descendants. nil: a handle is missing, or not recorded yet.
    private func runs(below operation: Int) -> Int? {
        let handles = state.withLock { state in
            var walk = [operation]
            var handles: [AnyOperation?] = []
            while let one = walk.popLast() {
                if !state.record.operations[one].isForgotten { handles.append(state.known[one].handle) }
                walk += state.record.operations[one].children.flatMap(\.self)
            }
            return handles
        }
        var runs = 0
        for handle in handles {
            guard let handle else { return nil }
            runs += handle.numberOfRuns
        }
        return runs
    }

    /// Resumes the queue if it is suspended, and opens every closed gate.
    ///
    /// - Returns: whether anything was closed.
    @discardableResult
    func openEverything() -> Bool {
        let handles = state.withLock { state in state.known.compactMap(\.handle) }
        var isAny = false
        if let queue, queue.isSuspended {
            queue.resume()
            isAny = true
        }
        for handle in handles where handle.isGated && handle.resume() { isAny = true }
        return isAny
    }

    /// The state of every operation, for a report.
    var tree: String {
        let roots = state.withLock { state in
            state.record.operations.indices.filter { state.record.operations[$0].parent == nil }
                .compactMap { state.known[$0].handle }
        }
        return roots.map(\.tree).joined(separator: "\n")
    }

    // MARK: The end

    /// Returns the record. Called when everything is over.
    func record() -> TreeRecord {
        let (known, atCancel) = state.withLock { ($0.known, $0.begunAtCancel) }
        for (operation, runs) in atCancel where isOutOfReach(operation) {
            if let now = self.runs(below: operation), now != runs {
                object("\(now - runs) blocks began after cancel() of #\(node(operation).id) had returned")
            }
        }
        for (index, one) in known.enumerated() {
            guard let handle = handle(index, makesObject: true), let ending = one.ending else { continue }
            let (result, attempt, runs) = (ending(), handle.attempt, handle.numberOfRuns)
            change(index) { entry in
                entry.ending = result
                entry.attempt = attempt
                entry.numberOfRuns = runs
            }
        }
        return state.withLock { $0.record }
    }

    /// Releases everything. ``leftovers`` then reports what is still alive.
    func letGo() {
        let former = state.withLock { state in
            let former = state.known
            for index in state.known.indices {
                state.known[index].handle = nil
                state.known[index].plain = nil
                state.known[index].ending = nil
            }
            return former
        }
        withExtendedLifetime(former) {}
    }

    /// The numbers of closures and operations that are still alive.
    var leftovers: (closures: Int, operations: Int) {
        (live.value, state.withLock { $0.known.count { $0.weakHandle != nil } })
    }
}
