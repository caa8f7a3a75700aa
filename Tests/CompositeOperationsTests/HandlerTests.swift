// When, where and on whose stack handlers run: G5, G6, G7.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Synchronization
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct HandlerTests {
    // MARK: G5

    @Test(.promises("G5")) func `when a handler of an end runs, the operation and all below it have ended`()
        async
    {
        await forAll(Shape.composite(depth: 4, badness: 25), cases: scaled(100)) { shape in
            // Handlers of every kind make the check: closures at the root, onOutcome at each node (in Node).
            let root = Node(shape)
            let violations = Log<String>()
            let check: @Sendable (String) -> Void = { who in
                for operation in root.registered where !operation.isEnded {
                    violations.add("\(who): \(operation)")
                }
                if root.all.contains(where: { $0.begun.value != $0.left.value }) {
                    violations.add("\(who): a block")
                }
            }
            root.start(onCompletion: { check("completion") })
            let isOver = Gate()
            root.operation?.onOutcome { _ in
                check("outcome")
                isOver.open()
            }
            await root.expectEnd()
            await isOver.opened()
            root.forgetObservers()
            #expect(violations.entries.isEmpty, "\(violations.entries)")
        }
    }

    @Test func `a leaf's closures run when it has ended`() async {
        for ending in Ended.allCases {
            let states = Log<OperationState>()
            let (operation, gate) = (COOperation<Void>(on: elsewhere), Gate())
            let look: @Sendable () -> Void = { [unowned operation] in states.add(operation.state) }
            operation.run { _ in
                gate.wait()
            } completion: {
                look()
            } cancellation: {
                look()
            } failure: { _ in
                look()
            }
            #expect(await eventually { operation.isExecuting })
            #expect(ending.end(operation))
            #expect(states.entries.isEmpty)
            gate.open()
            _ = await operation.outcome
            await operation.handlersAreOver()
            #expect(
                states.entries == [ending == .finish ? .finished : ending == .fail ? .failed : .cancelled])
        }
    }

    // MARK: G6

    /// Detects code that runs on the stack of a call.
    private final class Stack: Sendable {
        private let threads = Locked<[UInt: Int]>([:])
        let found = Log<String>()

        private var thread: UInt { UInt(pthread_self()) }

        func call<Answer>(_ body: () -> Answer) -> Answer {
            threads.withLock { $0[thread, default: 0] += 1 }
            defer { threads.withLock { $0[thread, default: 0] -= 1 } }
            return body()
        }

        /// Called by user code that must not run on the stack of a call.
        func visit(_ name: String) {
            if threads.withLock({ $0[thread] ?? 0 > 0 }) { found.add(name) }
        }
    }

    @Test(.promises("G6")) func `no user code runs on the stack of finish, fail or cancel`() async {
        for ending in Ended.allCases {
            for isCascade in [true, false] {
                let (stack, handled) = (Stack(), Count())
                let leaves = Locked<[COOperation<Void>]>([])
                let register: @Sendable (any CompositeScope) -> Void = { scope in
                    stack.visit("registration")
                    let first = scope.operation { (attempt: COOperation<Void>.Attempt) in
                        stack.visit("block")
                        attempt.onCancel { _ in stack.visit("onCancel") }
                    }
                    let second = scope.operation { () async throws in
                        stack.visit("task")
                        try await withTaskCancellationHandler {
                            try await Task.sleep(for: .seconds(isCascade ? 0 : 1000))
                        } onCancel: {
                            stack.visit("the task's cancellation handler")
                            handled.add()
                        }
                    }
                    for leaf in [first, second] { leaf.onOutcome { _ in stack.visit("a child's outcome") } }
                    leaves.withLock { $0 = [first, second] }
                }
                let composite: CompositeOperation<Void> =
                    if isCascade {
                        cascadeOperation {
                            register($0)
                        } completion: {
                            stack.visit("completion")
                        } cancellation: { _ in
                            stack.visit("cancellation")
                        }
                    } else {
                        transactionalOperation {
                            register($0)
                        } completion: {
                            stack.visit("completion")
                        } cancellation: { _ in
                            stack.visit("cancellation")
                        }
                    }
                composite.onOutcome { _ in stack.visit("outcome") }
                #expect(
                    await eventually {
                        leaves.withLock {
                            $0.count == 2 && $0[0].isExecuting && (isCascade || $0[1].isExecuting)
                        }
                    })
                let found = leaves.withLock { $0 }
                // Ending a leaf from outside cancels its task, too.
                if !isCascade {
                    #expect(await eventually { found[1].numberOfRuns == 1 })
                    stack.call { _ = ending.end(found[1]) }
                }
                stack.call { _ = ending.end(found[0]) }
                _ = await composite.outcome
                if !isCascade { #expect(await eventually { handled.value == 1 || found[1].isEnded }) }
                await composite.handlersAreOver()
                #expect(stack.found.entries.isEmpty, "\(ending): \(stack.found.entries)")
            }
        }
    }

    @Test func `a task is cancelled under no lock, not on cancel's stack`() async {
        for _ in 0..<scaled(50) {
            let stack = Stack()
            let begun = Gate()
            let operation = operation { () async throws in
                await withTaskCancellationHandler {
                    begun.open()
                    while !Task.isCancelled { await Task.yield() }
                } onCancel: {
                    stack.visit("the task's cancellation handler")
                }
            }
            await begun.opened()
            #expect(await eventually { stack.call { operation.cancel() } })
            _ = await operation.outcome
            #expect(stack.found.entries.isEmpty)
        }
    }

    @Test func `a user's clock is not called on an end's stack`() async {
        struct Watching: Clock {
            let stack: Stack
            let base = ManualClock()
            var now: ManualClock.Instant { base.now }
            var minimumResolution: Duration { base.minimumResolution }
            func sleep(until deadline: ManualClock.Instant, tolerance: Duration?) async throws {
                try await withTaskCancellationHandler {
                    try await base.sleep(until: deadline, tolerance: tolerance)
                } onCancel: {
                    stack.visit("a sleep's cancellation handler")
                }
            }
        }
        for ending in Ended.allCases {
            let stack = Stack()
            let clock = Watching(stack: stack)
            let operation = operation(options: OperationOptions(timeout: .seconds(9), clock: clock)) {
                (_: COOperation<Void>.Attempt) in
            }
            #expect(await eventually { clock.base.sleepers == 1 })
            stack.call { _ = ending.end(operation) }
            #expect(await eventually { clock.base.sleepers == 0 })
            #expect(stack.found.entries.isEmpty)
        }
    }

    @Test func `a handler may wait for a thread that uses its composite`() async {
        for isNested in [false, true] {
            for choice in 0..<4 {
                let asked = Count()
                let wait: @Sendable (AnyOperation) -> Void = { operation in
                    let isDone = Gate()
                    elsewhere.async {
                        Self.useEverything(operation)
                        isDone.open()
                    }
                    isDone.wait()
                }
                let options = OperationOptions(handlerTarget: elsewhere)
                let bad: COOperation<Void>.Block = { attempt in
                    if choice == 0 || asked.value == 1 { attempt.finish() } else { attempt.cancel() }
                }
                let register: @Sendable (any CompositeScope) -> Void = { scope in
                    scope.operation(options: options, bad).onOutcome { [control = scope.control] _ in
                        wait(control)
                    }
                    scope.operation(bad)
                }
                let composite = cascadeOperation(options: options) { cascade in
                    if isNested { cascade.transactionalOperation { register($0) } } else { register(cascade) }
                } completion: {
                } cancellation: { composite in
                    asked.add()
                    wait(composite)
                    // Either the calls in `wait` have decided, or this call does.
                    if choice % 2 == 1 { composite.awake() }
                }
                composite.onOutcome { [unowned composite] _ in wait(composite) }
                _ = await composite.outcome
                await composite.handlersAreOver()
            }
        }
    }

    /// Makes every query on an operation, and every call that changes nothing that a test checks.
    private static func useEverything(_ operation: AnyOperation) {
        _ = (operation.id, operation.state, operation.attempt, operation.numberOfRuns, operation.isReady)
        _ = (operation.isExecuting, operation.isSuspended, operation.isFinished, operation.isCancelled)
        _ = (operation.isFailed, operation.isEnded, operation.tree, operation.description)
        operation.suspend()
        operation.resume()
        operation.addDependency(operation)
        if let composite = operation as? CompositeOperation<Void> {
            _ = (composite.causes, composite.children, composite.result)
            for child in composite.children { _ = (child.state, child.tree) }
            _ = composite.deferDecision()
        }
    }

    @Test func `handlers call parents, children and siblings; none blocks another`() async {
        let cases = Generator<(Shape, [Int])>.zip(
            Shape.composite(depth: 3, badness: 10), Generator<Int>.int(in: 0...999).array(count: 1...20))
        await forAll(cases, cases: scaled(80)) { shape, choices in
            let root = Node(shape)
            let all = root.all
            let called = Count()
            root.start(onEach: { node in
                let choice = choices[called.add() % choices.count]
                guard let other = all[choice / 6 % all.count].operation else { return }
                switch choice % 6 {
                case 0: other.cancel()
                case 1: other.suspend()
                case 2: other.resume()
                case 3: if called.value < 60 { other.rerun() }  // otherwise this might never end
                default: Self.useEverything(other)
                }
                if let own = node.operation { Self.useEverything(own) }
            })
            let isOver = await eventually {
                for operation in root.registered { operation.resume() }
                return root.operation?.isEnded ?? false
            }
            #expect(isOver, "\(root.operation?.tree ?? "")")
            root.forgetObservers()
        }
    }

    /// Uses operations when it is released.
    private final class Trap: Sendable {
        private let operation = Locked<WeakReference?>(nil)
        let released: Count
        init(_ released: Count) { self.released = released }
        func set(_ operation: AnyOperation) { self.operation.withLock { $0 = WeakReference(operation) } }
        func hold() {}

        deinit {
            if let operation = operation.withLock({ $0?.operation }) { HandlerTests.useEverything(operation) }
            released.add()
        }
    }

    private struct WeakReference {
        weak let operation: AnyOperation?
        init(_ operation: AnyOperation) { self.operation = operation }
    }

    @Test(.promises("G6"), arguments: Ended.allCases)
    func `captures of blocks and handlers are freed under no lock`(_ ending: Ended) async {
        let released = Count()
        var made = 0
        for isRerun in [false, true] {
            let root = COTransaction<Void>()
            let leaves = Locked<[COOperation<Void>]>([])
            let traps = (0..<7).map { _ in Trap(released) }
            made += traps.count
            for trap in traps { trap.set(root) }
            let options = OperationOptions(
                resolver: COOperationResolver(retryIf: { [trap = traps[0]] _ in
                    trap.hold()
                    return false
                }))
            root.onOutcome { [trap = traps[1]] _ in trap.hold() }
            root.run {
                [trap = traps[2], inner = traps[3], handler = traps[4]] (group: TransactionScope) -> Void in
                trap.hold()
                let leaf = group.operation(options: options) { (attempt: COOperation<Void>.Attempt) in
                    inner.hold()
                    attempt.onCancel { _ in handler.hold() }
                }
                leaf.onOutcome { _ in handler.hold() }
                leaves.withLock { $0.append(leaf) }
            } completion: { [trap = traps[5]] in
                trap.hold()
            } cancellation: { [trap = traps[6]] _ in
                trap.hold()
            }
            #expect(await eventually { leaves.withLock { $0.last?.isExecuting ?? false } })
            if isRerun {
                #expect(root.rerun())
                #expect(await eventually { leaves.withLock { $0.count == 2 && $0[1].isExecuting } })
            }
            let leaf = leaves.withLock { $0.last }
            #expect(leaf.map(ending.end) ?? false)
            _ = await root.outcome
            await root.handlersAreOver()
        }
        #expect(await eventually { released.value == made }, "\(released.value) of \(made)")
    }

    @Test func `a block that is replaced is released under no lock`() async throws {
        let released = Count()
        func trap(_ operation: AnyOperation) -> Trap {
            let trap = Trap(released)
            trap.set(operation)
            return trap
        }
        let leaf = COOperation<Void>()
        leaf.operation = { [trap = trap(leaf)] _ in trap.hold() }
        leaf.operation = { [trap = trap(leaf)] _ in trap.hold() }
        #expect(released.value == 1)
        leaf.run { $0.finish() }
        #expect(released.value == 2)
        try await leaf.value

        let sync = COSyncOperation<Void>()
        sync.operation = { [trap = trap(sync)] _ in trap.hold() }
        _ = await racing(1) { _ in sync.run { $0.finish() } }
        #expect(released.value == 3)

        let cascade = COCascade<Void>()
        cascade.operation = { [trap = trap(cascade)] _ in
            trap.hold()
            throw TestError()
        }
        cascade.run { (_: CascadeScope) -> Void in }
        #expect(released.value == 4)
        try await cascade.value
    }

    // MARK: G7

    /// Runs work on a concurrent dispatch queue that carries a mark.
    private final class Marked: ExecutionTarget {
        private static let key = DispatchSpecificKey<Int>()
        static var current: Int? { DispatchQueue.getSpecific(key: key) }
        private let queue = DispatchQueue(label: "marked", attributes: .concurrent)
        init(_ mark: Int) { queue.setSpecific(key: Self.key, value: mark) }
        var isCurrent: Bool { false }
        func submit(_ work: ExecutionWork) { queue.async { work.run() } }
    }

    /// Where the calling code runs: on a marked target, on the built-in scheduler, or anywhere else.
    private static var here: String {
        if let mark = Marked.current { return "\(mark)" }
        return Scheduler.current === Scheduler.shared ? "built-in" : "nowhere"
    }

    @Test(.promises("G7")) func `each handler runs on its target, and on no other`() async {
        let cases = Generator<[Int]>.array(of: .int(in: 0...2), count: 6...6)
        await forAll(cases, cases: scaled(100)) { choices in
            let (kind, ending, hasTarget) = (choices[0], Ended.allCases[choices[1]], choices[2] > 0)
            let (isDefaultSet, isOnTarget, isReleasing) = (choices[3] > 0, choices[4] > 0, choices[5] > 0)
            let log = Log<(String, String)>()
            let (own, handlers, explicit, standard) = (Marked(1), Marked(2), Marked(3), Marked(4))
            let see: @Sendable (String) -> Void = { log.add(($0, Self.here)) }
            let options = hasTarget ? OperationOptions(handlerTarget: handlers) : .standard
            let target: Marked? = isOnTarget ? own : nil
            let end: COOperation<Void>.Block = { attempt in
                switch ending {
                case .finish: attempt.finish()
                case .fail: attempt.fail(TestError())
                case .cancel: attempt.cancel()
                }
            }
            let childEnd: COOperation<Void>.Block = { attempt in
                attempt.onCancel { _ in see("child's onCancel") }
                try end(attempt)
            }
            let make = { () -> OperationHandle<Void> in
                switch kind {
                case 0:
                    let leaf = COOperation<Void>(on: target, options: options)
                    leaf.run { attempt in
                        see("block")
                        attempt.onCancel { _ in see("onCancel") }
                        try end(attempt)
                    } completion: {
                        see("handler")
                    } cancellation: {
                        see("handler")
                    } failure: { _ in
                        see("handler")
                    }
                    return leaf
                case 1:
                    return cascadeOperation(on: target, options: options) { cascade in
                        see("block")
                        cascade.operation(childEnd).onOutcome { _ in see("child's outcome") }
                    } completion: {
                        see("handler")
                    } cancellation: { _ in
                        see("handler")
                    }
                default:
                    return transactionalOperation(on: target, options: options) { group in
                        see("block")
                        group.operation(childEnd).onOutcome { _ in see("child's outcome") }
                    } completion: {
                        see("handler")
                    } cancellation: { _ in
                        see("handler")
                    }
                }
            }
            let operation = isDefaultSet ? COQueues.withDefaultQueue(standard, make) : make()
            if isReleasing { await Task.yield() }
            operation.onOutcome { _ in see("handler") }
            operation.onOutcome(on: explicit) { _ in see("explicit") }
            _ = await operation.outcome
            operation.onOutcome { _ in see("handler") }
            await operation.handlersAreOver()
            for (who, place) in log.entries {
                let expected =
                    switch who {
                    case "block": isOnTarget ? "1" : isDefaultSet ? "4" : "built-in"
                    case "handler": hasTarget ? "2" : "built-in"
                    case "explicit": "3"
                    case "onCancel": hasTarget ? "2" : "built-in"
                    default: "built-in"  // a child's handler: a child inherits no target
                    }
                #expect(place == expected, "\(who)")
            }
            #expect(log.entries.filter { $0.0 == "handler" }.count == 3)
            #expect(log.entries.filter { $0.0 == "explicit" }.count == 1)
        }
    }

    @Test func `handlers of one operation run one at a time, in their order`() async {
        for _ in 0..<scaled(50) {
            let (log, inside) = (Log<Int>(), Count())
            let operation = COOperation<Void>()
            let handle: @Sendable (Int) -> Void = { number in
                #expect(inside.add() == 1)
                log.add(number)
                inside.add(-1)
            }
            for number in 1...5 {
                operation.onOutcome(on: number % 2 == 0 ? elsewhere : nil) { _ in handle(number) }
            }
            operation.run({ $0.finish() }, completion: { handle(0) })
            _ = await racing(2) { _ in operation.onOutcome { _ in handle(6) } }
            await operation.handlersAreOver()
            #expect(log.entries == [0, 1, 2, 3, 4, 5, 6, 6])
        }
    }
}

extension OperationHandle where Success == Void {
    /// Waits until the operation has ended and all handlers added before this call have returned. Handlers run one at a
    /// time, in order.
    func handlersAreOver() async {
        await withCheckedContinuation { continuation in onOutcome { _ in continuation.resume() } }
    }
}
