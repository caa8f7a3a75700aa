// PriorityTests - which priority an operation has, the order in which queues admit, and how waits raise priorities.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

/// One worker, held until a test releases it. Blocks record their names and the priority of their turns.
private final class Bench: Sendable {
    let scheduler: Scheduler
    let names = Log<String>()
    let turns = Log<Scheduler.Priority>()
    private let gate = Gate()

    init() async throws {
        scheduler = try Scheduler(.init(workers: 1, spareWorkers: 0))
        let isIn = Gate()
        try scheduler.submit { [gate] in
            isIn.open()
            gate.wait()
        }
        await aside { isIn.wait() }
    }

    func block(_ name: String) -> @Sendable () -> Void {
        { [self] in
            names.add(name)
            turns.add(Scheduler.currentPriority)
        }
    }

    @discardableResult
    func add(_ name: String, _ priority: Scheduler.Priority? = nil) -> COOperation<Void> {
        operation(on: scheduler, options: OperationOptions(priority: priority), block(name))
    }

    /// Waits until `turns` turns have been sent, including turns sent again. A new priority is visible before the turn
    /// with that priority is sent.
    func hasBeenSent(_ turns: Int) async -> Bool {
        await eventually { scheduler.statistics.submitted == 1 + turns }
    }

    func letGo() { gate.open() }

    /// Releases the worker, and waits until it has nothing left to run. Background work runs last.
    func runAll() async throws {
        // A thread that sends a high-priority turn may not have announced it yet; this submission does.
        try scheduler.submit(priority: .high) {}
        letGo()
        let isDone = Gate()
        try scheduler.submit(priority: .background) { isDone.open() }
        await aside { isDone.wait() }
    }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct OperationPriorityTests {
    // MARK: Choice of the priority

    @Test(.promises("G42")) func `turns come in the order of priorities`() async throws {
        let bench = try await Bench()
        let all: [Scheduler.Priority] = [.background, .default, .high]
        let started = all.map { bench.add("\($0)", $0) }
        #expect(started.map(\.priority) == all)
        try await bench.runAll()
        #expect(bench.names.entries == ["high", "default", "background"])
        #expect(bench.turns.entries == all.reversed())
    }

    @Test(.promises("G42"), arguments: Scheduler.Priority.allCases)
    func `an operation inherits from the body that starts it, and from a task`(
        priority: Scheduler.Priority
    ) async throws {
        let (priorities, turns) = (Mail<Scheduler.Priority>(), Mail<Scheduler.Priority>())
        let made = COOperation<Void> { attempt in
            turns.send(Scheduler.currentPriority)
            attempt.finish()
        }
        try Scheduler.shared.submit(priority: priority) {
            made.start()
            priorities.send(made.priority)
            priorities.send(operation { turns.send(Scheduler.currentPriority) }.priority)
        }
        let ofTask: TaskPriority = priority == .high ? .high : priority == .default ? .medium : .background
        Task.detached(priority: ofTask) {
            priorities.send(operation { turns.send(Scheduler.currentPriority) }.priority)
        }
        for _ in 0..<3 {
            #expect(await priorities.next() == priority)
            #expect(await turns.next() == priority)
        }
        await aside { #expect(operation {}.priority == .default, "no task, no worker") }
    }

    @Test(.promises("G42")) func `options override the queue, and the queue what is inherited`()
        async throws
    {
        let queue = COOperationQueue(priority: .background)
        #expect(queue.priority == .background)
        let mail = Mail<[AnyOperation]>()
        try Scheduler.shared.submit(priority: .high) {
            let added = COOperation<Void> { $0.finish() }
            queue.add(added)
            mail.send([
                operation {}, operation(on: queue) {}, added,
                operation(on: queue, options: OperationOptions(priority: .default)) {},
                operation(options: OperationOptions(priority: .default)) {},
            ])
        }
        #expect(await mail.next().map(\.priority) == [.high, .background, .background, .default, .default])
        queue.priority = nil
        #expect(queue.priority == nil)
        #expect(operation(on: queue) {}.priority == .default)
        await queue.idle()
    }

    @Test(.promises("G42"))
    func `an unstarted operation has its options' priority; a copy has its own`() async throws {
        let first = COOperation<Void>(options: OperationOptions(priority: .high)) { $0.finish() }
        let copy = first.copy()
        #expect(first.priority == .high && copy.priority == .high)
        first.start()
        try await first.value
        #expect(first.priority == .high, "after its end, too")
        copy.start()
        try await copy.value
        #expect(copy.priority == .high)
    }

    @Test(.promises("G42"))
    func `children have their composite's priority, unless their options or queue set another`()
        async throws
    {
        let queue = COOperationQueue(priority: .high)
        let mail = Mail<[AnyOperation]>()
        let outer = transactionalOperation(options: OperationOptions(priority: .background)) { group in
            let ready = COOperation<Void> { $0.finish() }
            try group.add(ready)
            let nested = group.cascadeOperation { inner in
                mail.send([inner.operation {}, inner.operation(on: queue) {}])
            }
            mail.send([
                ready, nested, group.operation {},
                group.operation(options: OperationOptions(priority: .high)) {}, group.operation(on: queue) {},
            ])
        }
        var all = [await mail.next(), await mail.next()]
        all.sort { $0.count < $1.count }
        #expect(all[0].map(\.priority) == [.background, .high])
        #expect(all[1].map(\.priority) == [.background, .background, .background, .high, .high])
        try await outer.value
        await queue.idle()
    }

    @Test(.promises("G42")) func `children of a composite of the default priority may have another one`()
        async throws
    {
        let (made, ended) = (Mail<[COOperation<Scheduler.Priority>]>(), Mail<Void>())
        let composite = transactionalOperation { group in
            made.send(
                Scheduler.Priority.allCases.map { priority in
                    group.operation(options: OperationOptions(priority: priority)) {
                        Scheduler.currentPriority
                    }
                })
        }
        // A handler, because waiting for the composite would raise the children.
        composite.onOutcome { _ in ended.send(()) }
        await ended.next()
        for (child, priority) in zip(await made.next(), Scheduler.Priority.allCases) {
            #expect(try await child.value == priority)
        }
    }

    @Test(.promises("G42")) func `a queue's priority is considered once`() async throws {
        let queue = COOperationQueue(priority: .background)
        let mail = Mail<AnyOperation>()
        let composite = transactionalOperation(on: queue, options: OperationOptions(priority: .high)) {
            group in
            mail.send(group.operation {})
        }
        #expect(await mail.next().priority == .high)
        try await composite.value
        await queue.idle()
    }

    @Test(
        .promises("G42"),
        arguments: [Scheduler.Priority.background, .default, .high],
        [Scheduler.Priority.background, .default, .high])
    func `a step has its cascade's priority, whatever ends its predecessor`(
        priority: Scheduler.Priority, other: Scheduler.Priority
    ) async throws {
        let (attempts, turns) = (Mail<COOperation<Void>.Attempt>(), Log<Scheduler.Priority>())
        let cascade = cascadeOperation(options: OperationOptions(priority: priority)) { cascade in
            for _ in 0..<3 {
                cascade.operation { attempt in
                    turns.add(Scheduler.currentPriority)
                    attempts.send(attempt)
                }
            }
        }
        let ended = Mail<Void>()
        cascade.onOutcome { _ in ended.send(()) }
        for _ in 0..<3 {
            let attempt = await attempts.next()
            try Scheduler.shared.submit(priority: other) { attempt.finish() }
        }
        await ended.next()
        #expect(turns.entries == [priority, priority, priority])
    }

    @Test(.promises("G42"), arguments: [true, false])
    func `on lanes and in queues a turn has the operation's priority`(isLane: Bool) async throws {
        let lane = try SerialLane(on: .shared)
        let target: any ExecutionTarget = isLane ? lane : COOperationQueue(runningLimit: 2, on: lane)
        let one = operation(on: target, options: OperationOptions(priority: .high)) {
            Scheduler.currentPriority
        }
        #expect(try await one.value == .high)
        if let queue = target as? COOperationQueue { await queue.idle() }
    }

    @Test(.promises("G42")) func `handlers run at the priority of their operation`() async throws {
        for priority in Scheduler.Priority.allCases {
            let told = Mail<Scheduler.Priority>()
            let one = COOperation<Void>(options: OperationOptions(priority: priority))
            one.onOutcome { _ in told.send(Scheduler.currentPriority) }
            one.run { _ in }
            #expect(await eventually { one.hasLeftOpen })
            one.finish()  // on this thread, which does not have that priority
            #expect(await told.next() == priority)
        }
    }

    @Test(.promises("G42"))
    func `the tasks of asynchronous blocks and of executors have the operation's priority`()
        async throws
    {
        actor Resident {}
        for (priority, expected) in [
            (Scheduler.Priority.high, TaskPriority.high), (.background, .background),
        ] {
            let seen = Mail<TaskPriority>()
            let options = OperationOptions(priority: priority)
            let resident = Resident()
            let started: [AnyOperation] = [
                operation(options: options) { () async in seen.send(Task.basePriority ?? .medium) },
                operation(on: serialQueue(), options: options) { () async in
                    seen.send(Task.basePriority ?? .medium)
                },
                operation(on: ExecutorTarget(resident), options: options) { seen.send(Task.currentPriority) },
            ]
            for _ in started { #expect(await seen.next() == expected) }
        }
    }

    // MARK: Queues

    /// A queue with one slot, whose turns run when the test releases them.
    private struct Held {
        let target = HoldingTarget()
        let queue: COOperationQueue
        let log = Log<String>()

        init(_ order: COOperationQueue.Order = .fifo) {
            queue = COOperationQueue(order, runningLimit: 1, on: target)
        }

        @discardableResult
        func add(_ name: String, _ priority: Scheduler.Priority? = nil) -> COOperation<Void> {
            operation(on: queue, options: OperationOptions(name: name, priority: priority)) { log.add(name) }
        }

        func runAll() { while target.count > 0 { target.letGo() } }
    }

    @Test(.promises("G44"), arguments: [COOperationQueue.Order.fifo, .lifo])
    func `a queue admits operations of a higher priority first, each priority in its order`(
        order: COOperationQueue.Order
    ) async {
        let held = Held(order)
        held.add("first")
        for number in 1...2 {
            for priority in Scheduler.Priority.allCases { held.add("\(priority) \(number)", priority) }
        }
        held.runAll()
        let numbers = order == .fifo ? [1, 2] : [2, 1]
        let expected = ["high", "default", "background"].flatMap { name in numbers.map { "\(name) \($0)" } }
        #expect(held.log.entries == ["first"] + expected)
        await held.queue.idle()
    }

    @Test(.promises("G44"))
    func `children go before others of their priority, and after any higher one`() async {
        let held = Held()
        let log = held.log
        let composite = transactionalOperation(on: held.queue) { group in
            held.add("other")
            held.add("high", .high)
            group.operation { log.add("child") }
        }
        held.runAll()
        #expect(log.entries == ["high", "child", "other"])
        #expect(composite.isEnded)
        await held.queue.idle()
    }

    @Test(.promises("G44"))
    func `of 61 admissions one has the lowest priority, and one the default`() async {
        let held = Held()
        held.queue.suspend()
        for _ in 0..<400 { held.add("high", .high) }
        for _ in 0..<4 { held.add("background", .background) }
        for _ in 0..<4 { held.add("default") }
        held.queue.resume()
        held.runAll()
        let log = held.log.entries
        #expect(log.indices.filter { log[$0] == "background" } == [60, 121, 182, 243])
        #expect(log.indices.filter { log[$0] == "default" } == [30, 91, 152, 213])
        #expect(log.count == 408)
        await held.queue.idle()
    }

    @Test(.promises("G44")) func `a raised operation takes no turn at its old priority`() async throws {
        let held = Held()
        held.add("first")
        for _ in 0..<100 { held.add("high", .high) }
        let raised = held.add("raised", .background)
        held.add("background", .background)
        let one = dependent(on: raised)
        one.start()
        held.runAll()
        let log = held.log.entries
        #expect(log.firstIndex(of: "background") == 60 && log.firstIndex(of: "raised") == 102)
        try await one.value
        await held.queue.idle()
    }

    @Test(.promises("G44")) func `with two priorities the lower one has its turn, too`() async {
        let held = Held()
        held.queue.suspend()
        for _ in 0..<130 { held.add("default") }
        for _ in 0..<2 { held.add("background", .background) }
        held.queue.resume()
        held.runAll()
        let log = held.log.entries
        #expect(log.indices.filter { log[$0] == "background" } == [60, 121])
        await held.queue.idle()
    }

    // MARK: Waiters

    /// Makes a high-priority operation depend on `other`, which raises `other` at once.
    private func dependent(on other: AnyOperation) -> COOperation<Void> {
        let one = COOperation<Void>(options: OperationOptions(priority: .high)) { $0.finish() }
        #expect(one.addDependency(other))
        return one
    }

    @Test(.promises("G43"))
    func `an operation raised while its turn is pending goes first, and runs once`()
        async throws
    {
        let bench = try await Bench()
        bench.add("default")
        let raised = bench.add("raised", .background)
        let one = dependent(on: raised)
        #expect(raised.priority == .background, "the one that depends on it has not been started")
        one.start()
        #expect(raised.priority == .high)
        try await bench.runAll()
        #expect(bench.names.entries == ["raised", "default"])
        #expect(bench.turns.entries == [.high, .default])
        try await one.value
        #expect(raised.numberOfRuns == 1)
    }

    @Test(.promises("G43")) func `on a lane the operations before a raised one run sooner`() async throws {
        let bench = try await Bench()
        let lane = try SerialLane(on: bench.scheduler)
        bench.add("default")
        let before = operation(on: lane, bench.block("before"))
        let raised = operation(on: lane, bench.block("raised"))
        let one = dependent(on: raised)
        one.start()
        try await bench.runAll()
        #expect(bench.names.entries == ["before", "raised", "default"])
        try await (before.value, one.value).0
    }

    @Test(.promises("G43")) func `raised behind a gate, an operation runs once, at its new priority`()
        async throws
    {
        let bench = try await Bench()
        let raised = bench.add("raised", .background)
        #expect(raised.suspend())
        let one = dependent(on: raised)
        one.start()
        try await bench.runAll()
        #expect(bench.names.entries == [])
        #expect(raised.resume())
        try await one.value
        #expect(bench.turns.entries == [.high])
        #expect(raised.numberOfRuns == 1)
    }

    @Test(.promises("G43")) func `a task that waits raises what it waits for`() async throws {
        let bench = try await Bench()
        bench.add("default")
        let raised = bench.add("raised", .background)
        let task = Task.detached(priority: .high) { try await raised.value }
        #expect(await bench.hasBeenSent(3))
        #expect(raised.priority == .high)
        try await bench.runAll()
        try await task.value
        #expect(bench.names.entries == ["raised", "default"])
    }

    @Test(.promises("G43")) func `a thread that waits raises what it waits for: on a worker, and elsewhere`()
        async throws
    {
        let (bench, ended) = (try await Bench(), Mail<Void>())
        let (first, second) = (bench.add("first", .background), bench.add("second", .background))
        try Scheduler.shared.submit(priority: .high) {
            second.wait()
            ended.send(())
        }
        elsewhere.async {
            first.wait()
            ended.send(())
        }
        #expect(await bench.hasBeenSent(4))
        #expect(first.priority == .default && second.priority == .high)
        try await bench.runAll()
        for _ in 0..<2 { await ended.next() }
        #expect(bench.names.entries == ["second", "first"])
    }

    @Test(.promises("G43")) func `the caller of a sync operation raises it`() async throws {
        let bench = try await Bench()
        let sync = COSyncOperation<Void>(
            on: bench.scheduler, options: OperationOptions(priority: .background)
        ) { [block = bench.block("sync")] attempt in
            block()
            attempt.finish()
        }
        try Scheduler.shared.submit(priority: .high) { sync.start() }
        #expect(await bench.hasBeenSent(2))
        #expect(sync.priority == .high)
        bench.add("default")
        try await bench.runAll()
        #expect(bench.names.entries == ["sync", "default"])
        #expect(bench.turns.entries == [.high, .default])
    }

    @Test(.promises("G43")) func `no wait lowers a priority`() async throws {
        let bench = try await Bench()
        let one = bench.add("high", .high)
        let ended = Mail<Void>()
        try Scheduler.shared.submit(priority: .background) {
            one.wait()
            ended.send(())
        }
        let dependent = COOperation<Void>(options: OperationOptions(priority: .background)) { $0.finish() }
        #expect(dependent.addDependency(one))
        dependent.start()
        #expect(one.priority == .high)
        try await bench.runAll()
        await ended.next()
        #expect(one.priority == .high)
        #expect(bench.turns.entries == [.high])
    }

    @Test(.promises("G43")) func `a raise before the start takes effect`() async throws {
        let raised = COOperation<Scheduler.Priority>(options: OperationOptions(priority: .background)) {
            $0.finish(Scheduler.currentPriority)
        }
        let one = dependent(on: raised)
        one.start()
        #expect(raised.priority == .high)
        raised.start()
        #expect(raised.priority == .high)
        try await one.value
        #expect(try await raised.value == .high)
    }

    @Test func `a wait that begins before the start raises too`() async throws {
        let queue = COOperationQueue(priority: .background)
        let started = COOperation<Void>(options: OperationOptions(priority: .background)) { $0.finish() }
        let queued = COOperation<Void> { $0.finish() }
        let group = transactionalOperation(options: OperationOptions(priority: .background)) { _ in }
        let waiters = [started, queued].map { other in
            let one = COOperation<Void>(options: OperationOptions(priority: .default)) { $0.finish() }
            #expect(one.addDependency(other))
            one.start()
            return one
        }
        #expect(started.priority == .default && queued.priority == .default)
        started.start()
        queue.add(queued)
        #expect(started.priority == .default && queued.priority == .default)
        for one in waiters { try await one.value }
        try await group.value
        await queue.idle()
    }

    /// Each wait visits only the steps that no earlier wait has visited, so ten times as many steps take ten times as
    /// long. The test measures the CPU time of the waiting thread, which does not depend on other threads.
    @Test func `any number of waits for late steps cost no more than the steps`() async throws {
        func nanoseconds(_ count: Int) async throws -> Int {
            let (isOpen, mail) = (Mail<COOperation<Void>.Attempt>(), Mail<[COOperation<Void>]>())
            let outer = cascadeOperation { cascade in
                cascade.operation { isOpen.send($0) }
                mail.send((0..<count).map { _ in cascade.operation {} })
            }
            let (steps, attempt, times) = (await mail.next(), await isOpen.next(), Mail<Int>())
            try Scheduler.shared.submit(priority: .high) {
                let begin = threadTime()
                for step in steps.reversed() { _ = step.wait(timeout: .nanoseconds(1)) }
                times.send(threadTime() - begin)
            }
            let time = await times.next()
            #expect(steps.allSatisfy { $0.priority == .high })
            attempt.finish()
            try await outer.value
            return time
        }
        _ = try await nanoseconds(100)
        let (few, many) = (try await nanoseconds(100), try await nanoseconds(5000))
        // Linear growth is a factor of 50, quadratic growth a factor of 2,500.
        #expect(many < few * 400)
    }

    @Test func `raised on a shut-down scheduler, an operation ends all the same`() async throws {
        let closed = try Scheduler(.init(workers: 1))
        try await closed.shutdown()
        for _ in 0..<100 {
            let raised = COOperation<Void>(
                on: closed, options: OperationOptions(priority: .background)
            ) { $0.finish() }
            let one = dependent(on: raised)
            _ = await atOnce(2) { thread in
                if thread == 0 { raised.start() } else { one.start() }
            }
            try await one.value
            #expect(raised.isCancelled)
        }
    }

    @Test func `resubmitted turns leave the background its share`() async throws {
        let bench = try await Bench()
        let raised = (0..<200).map { bench.add("raised \($0)", .background) }
        let ones = raised.map { dependent(on: $0) }
        for one in ones { one.start() }
        let (isOver, runs, rounds) = (Gate(), Count(), Count())
        // Nothing waits for this operation, because a wait would raise it.
        operation(on: bench.scheduler, options: OperationOptions(priority: .background)) {
            runs.add()
            isOver.open()
        }
        @Sendable func goOn() {
            rounds.add()
            if runs.value == 0 { try? bench.scheduler.submit(goOn) }
        }
        try bench.scheduler.submit(goOn)
        bench.letGo()
        await aside { isOver.wait() }
        for one in ones { try await one.value }
        #expect(rounds.value <= 4 * 61)
    }

    @Test func `turns of cancelled operations leave the background its share`() async throws {
        let bench = try await Bench()
        let (isOver, runs, rounds) = (Gate(), Count(), Count())
        // Without options, operations have the priority of the code that starts them.
        let isStarted = Gate()
        try Scheduler.shared.submit(priority: .background) {
            for _ in 0..<200 { operation(on: bench.scheduler) {}.cancel() }
            operation(on: bench.scheduler) {
                runs.add()
                isOver.open()
            }
            isStarted.open()
        }
        await aside { isStarted.wait() }
        @Sendable func goOn() {
            rounds.add()
            if runs.value == 0 { try? bench.scheduler.submit(goOn) }
        }
        try bench.scheduler.submit(goOn)
        bench.letGo()
        await aside { isOver.wait() }
        #expect(rounds.value <= 4 * 61)
    }

    @Test(.promises("G43"), arguments: [5, scaled(50_000)])
    func `the dependencies of an operation are raised with it, over any length of a chain`(count: Int)
        async throws
    {
        let bench = try await Bench()
        bench.add("default")
        let chain = (0..<count).map { number in
            COOperation<Void>(on: bench.scheduler, options: OperationOptions(priority: .background)) {
                bench.names.add("\(number)")
                $0.finish()
            }
        }
        for index in (1..<count).reversed() { #expect(chain[index].addDependency(chain[index - 1])) }
        for one in chain { one.start() }
        let last = dependent(on: chain[count - 1])
        await onSmallStack { _ = last.start() }
        #expect(chain.allSatisfy { $0.priority == .high })
        #expect(bench.names.entries == [])
        try await bench.runAll()
        try await last.value
        #expect(bench.names.entries.prefix(5) == ["0", "1", "2", "3", "4"])
        #expect(bench.names.entries.count == count + 1)
    }

    @Test(.promises("G43")) func `raised in a queue, an operation goes first, also when it slept`()
        async throws
    {
        let held = Held()
        held.add("first")
        held.add("second")
        let (raised, sleeper) = (held.add("raised"), held.add("sleeper"))
        held.add("third")
        #expect(sleeper.suspend())
        let ones = [dependent(on: raised), dependent(on: sleeper)]
        for one in ones { one.start() }
        #expect(sleeper.resume())
        held.runAll()
        #expect(held.log.entries == ["first", "raised", "sleeper", "second", "third"])
        for one in ones { try await one.value }
        await held.queue.idle()
    }

    @Test(.promises("G43"))
    func `raised in a queue, an operation keeps its place in the line of its new priority`()
        async throws
    {
        let held = Held()
        held.add("first")
        let raised = held.add("raised", .background)
        held.add("high", .high)
        let one = dependent(on: raised)
        one.start()
        held.add("last", .high)
        held.runAll()
        #expect(held.log.entries == ["first", "raised", "high", "last"])
        #expect(held.queue.pendingOperations.isEmpty)
        try await one.value
        await held.queue.idle()
    }

    @Test(.promises("G43")) func `raising a composite raises all below it and each later child`()
        async throws
    {
        let mail = Mail<[AnyOperation]>()
        let (low, attempts) = (OperationOptions(priority: .background), Mail<COOperation<Void>.Attempt>())
        let scope = Mail<TransactionScope>()
        let outer = transactionalOperation { group in
            let explicit = group.operation(options: low) { attempts.send($0) }
            let cascade = group.cascadeOperation { inner in
                mail.send([inner.operation { attempts.send($0) }, inner.operation(options: low) {}])
            }
            mail.send([explicit, cascade])
            scope.send(group)
        }
        let all = await mail.next() + mail.next()
        let open = await [attempts.next(), attempts.next()]
        #expect(all.contains { $0.priority == .background })
        let one = dependent(on: outer)
        one.start()
        #expect(all.allSatisfy { $0.priority == .high })
        let group = await scope.next()
        let later: [AnyOperation] = [group.operation {}.operation, group.operation(options: low) {}]
        #expect(later.allSatisfy { $0.priority == .high })
        for attempt in open { attempt.finish() }
        try await one.value
    }

    @Test(.promises("G43"))
    func `below a composite of the same priority children of a lower one are raised, too`() async throws {
        let (mail, attempts) = (Mail<AnyOperation>(), Mail<COOperation<Void>.Attempt>())
        let outer = transactionalOperation(options: OperationOptions(priority: .high)) { group in
            group.transactionalOperation { inner in
                mail.send(
                    inner.operation(options: OperationOptions(priority: .background)) { attempts.send($0) })
            }
        }
        let lower = await mail.next()
        #expect(lower.priority == .background)
        let one = dependent(on: outer)
        one.start()
        #expect(lower.priority == .high)
        await attempts.next().finish()
        try await one.value
    }

    @Test(.promises("G43")) func `raising a step raises the steps before it, none after it`()
        async throws
    {
        let (mail, attempts) = (Mail<[AnyOperation]>(), Mail<COOperation<Void>.Attempt>())
        let outer = cascadeOperation { cascade in
            let ended = cascade.operation {}
            var steps: [AnyOperation] = [ended.operation, cascade.operation { attempts.send($0) }]
            for _ in 0..<3 { steps.append(cascade.operation {}.operation) }
            mail.send(steps)
        }
        let steps = await mail.next()
        let attempt = await attempts.next()
        let one = dependent(on: steps[3])
        one.start()
        #expect(steps.map(\.priority) == [.default, .high, .high, .high, .default])
        #expect(outer.priority == .default)
        attempt.finish()
        try await one.value
        try await outer.value
    }

    @Test(.promises("G43")) func `a task running an operation is raised with it`() async throws {
        let isIn = Mail<Void>()
        let raised = operation { () async in
            isIn.send(())
            while Task.currentPriority < .high { await Task.yield() }
        }
        await isIn.next()
        let one = dependent(on: raised)
        one.start()
        try await one.value
        #expect(raised.isFinished)
    }

    // MARK: All at once

    @Test(.promises("G43")) func `threads raise and start awaited operations: each runs once`()
        async throws
    {
        for _ in 0..<scaled(200) {
            let (runs, queue) = (Count(), COOperationQueue(runningLimit: 2))
            let all = (0..<8).map { number in
                COOperation<Void>(
                    on: number % 2 == 0 ? queue : nil, options: OperationOptions(priority: .background)
                ) {
                    runs.add()
                    $0.finish()
                }
            }
            let dependents = all.map { dependent(on: $0) }
            _ = await atOnce(4) { thread in
                for index in all.indices {
                    switch thread {
                    case 0: all[index].start()
                    case 1: dependents[index].start()
                    case 2: if all[index].suspend() { all[index].resume() }
                    default: all[7 - index].wait()
                    }
                }
            }
            for one in dependents { try await one.value }
            #expect(runs.value == all.count)
            #expect(all.allSatisfy { $0.numberOfRuns == 1 })
            await queue.idle()
        }
    }
}
