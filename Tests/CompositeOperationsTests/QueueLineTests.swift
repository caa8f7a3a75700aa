// QueueLineTests - the order of admission, the place to which an operation returns, and removal: step by step, on a
// target driven by hand.

import CompositeOperations
import CompositeOperationsBasics
import CompositeOperationsTestSupport
import Foundation
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

/// A queue whose turns run when the test releases them.
private struct Bench {
    let target = HoldingTarget()
    let queue: COOperationQueue
    let log = Log<String>()

    init(_ order: COOperationQueue.Order = .fifo, runningLimit: Int = 1, pendingLimit: Int? = nil) {
        queue = COOperationQueue(order, runningLimit: runningLimit, pendingLimit: pendingLimit, on: target)
    }

    /// An operation that takes a slot and keeps it until it is finished.
    func holder() -> COOperation<Void> {
        let one = operation(on: queue) { _ in }
        runAll()
        #expect(one.hasLeftOpen)
        return one
    }

    @discardableResult
    func add(_ name: String) -> COOperation<Void> { operation(on: queue) { log.add(name) } }

    /// Runs turn after turn, until no more are sent.
    func runAll() { while target.count > 0 { target.letGo() } }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct QueueLineTests {
    // MARK: Places

    @Test(.promises("G32"), arguments: [COOperationQueue.Order.fifo, .lifo])
    func `a due operation regains its place in line`(order: COOperationQueue.Order) async {
        let bench = Bench(order)
        let holder = bench.holder()
        let moved = bench.add("first")
        bench.add("second")
        #expect(moved.suspend() && moved.resume())
        let sleeper = bench.add("third")
        #expect(sleeper.suspend())
        bench.add("fourth")
        #expect(sleeper.resume())
        holder.finish()
        bench.runAll()
        let all = ["first", "second", "third", "fourth"]
        #expect(bench.log.entries == (order == .fifo ? all : all.reversed()))
        await bench.queue.idle()
    }

    @Test(.promises("G32"), arguments: [COOperationQueue.Order.fifo, .lifo])
    func `a turn that meets a closed gate keeps its place`(order: COOperationQueue.Order) async {
        let bench = Bench(order)
        let first = bench.add("first")
        bench.add("second")
        bench.add("third")
        #expect(bench.target.count == 1, "the turn of the first one is on its way")
        #expect(first.suspend())
        bench.target.letGo()
        #expect(first.resume())
        #expect(bench.queue.pendingOperations.first === first)
        bench.runAll()
        // The slot that the suspended operation could not use went to another one.
        #expect(
            bench.log.entries
                == (order == .fifo ? ["second", "first", "third"] : ["third", "second", "first"]))
        await bench.queue.idle()
    }

    @Test(.promises("G32")) func `another attempt goes last`() async {
        let bench = Bench()
        operation(on: bench.queue) { attempt in
            bench.log.add("attempt \(attempt.number)")
            if attempt.number == 1 { attempt.rerun() } else { attempt.finish() }
        }
        bench.add("second")
        bench.add("third")
        bench.runAll()
        #expect(bench.log.entries == ["attempt 1", "second", "third", "attempt 2"])
        await bench.queue.idle()
    }

    @Test(.promises("G32")) func `a requeued child goes behind the waiting children`() async {
        let bench = Bench()
        let (holders, children) = (Mail<COOperation<Void>>(), Mail<COOperation<Void>>())
        let scopes = Mail<TransactionScope>()
        let options = OperationOptions(handlerTarget: bench.target)
        let outer = transactionalOperation(on: bench.queue) { group in
            holders.send(group.operation { _ in })
            scopes.send(group)
        }
        bench.runAll()
        let (holder, scope) = (await holders.next(), await scopes.next())
        #expect(holder.hasLeftOpen)
        let group = transactionalOperation(on: bench.queue, options: options) { group in
            children.send(group.operation { bench.log.add("again") })
            bench.queue.runningLimit = 1  // otherwise the child would take this block's slot
        } cancellation: {
            $0.awake()
        }
        bench.queue.runningLimit = 2
        bench.runAll()
        let child = await children.next()
        scope.operation { bench.log.add("before it") }
        #expect(bench.queue.pendingOperations.first === child)
        #expect(child.cancel())
        bench.runAll()
        #expect(group.attempt == 2 && child.state == .queued)
        holder.finish()
        bench.runAll()
        #expect(bench.log.entries == ["before it", "again"])
        #expect(await group.outcome.isFinished)
        #expect(await outer.outcome.isFinished)
        await bench.queue.idle()
    }

    @Test func `a child to be restarted after a pause is not queued meanwhile`() async {
        let (bench, clock) = (Bench(), ManualClock())
        let resolver = COOperationResolver(
            maxAttempts: 2, backoff: .constant(.seconds(1)), clock: clock)
        let children = Mail<COOperation<Void>>()
        let group = transactionalOperation(on: bench.queue, options: OperationOptions(resolver: resolver)) {
            group in
            children.send(group.operation { attempt in if attempt.number == 2 { attempt.finish() } })
            children.send(group.operation { bench.log.add("child") })
        }
        bench.runAll()
        let (holder, child) = (await children.next(), await children.next())
        #expect(holder.hasLeftOpen)
        #expect(bench.queue.pendingOperations.map(\.id) == [child.id])
        // All children end in one step, and will run again.
        #expect(child.cancel())
        #expect(group.attempt == 2 && bench.queue.pendingOperations.isEmpty)
        #expect(await eventually { clock.sleepers == 1 })
        clock.advance(by: .seconds(1))
        #expect(
            await eventually {
                bench.runAll()
                return group.isFinished
            })
        #expect(bench.log.entries == ["child"])
        await bench.queue.idle()
    }

    private enum Step: CaseIterable {
        case add, addComposite, letGo, finish, rerun, suspend, resume, cancel
    }

    @Test(.promises("G32"))
    func `an aggressive queue never displaces an operation while an older one waits, in any history`()
        async
    {
        let step = Generator<Step>.element(of: Step.allCases + [.add, .add, .letGo])
        let program = Generator.array(of: Generator.zip(step, Generator.int(in: 0...1_000)), count: 1...150)
        await forAll(program, cases: scaled(150)) { program in
            let bench = Bench(.aggressiveLIFO, runningLimit: 2, pendingLimit: 3)
            let attempts = Log<COOperation<Void>.Attempt>()
            var all: [OperationHandle<Void>] = []
            for (step, number) in program {
                let before = bench.queue.pendingOperations
                let one = all.isEmpty ? nil : all[number % all.count]
                let open = attempts.entries.filter { $0.isCurrent }
                let attempt = open.isEmpty ? nil : open[number % open.count]
                switch step {
                case .add: all.append(operation(on: bench.queue) { attempts.add($0) })
                case .addComposite:
                    all.append(
                        transactionalOperation(on: bench.queue) { group in
                            for _ in 0..<2 { group.operation { attempts.add($0) } }
                        })
                case .letGo: bench.target.letGo()
                case .finish: attempt?.finish()
                case .rerun: attempt?.rerun()
                case .suspend: one?.suspend()
                case .resume: one?.resume()
                case .cancel: one?.cancel()
                }
                let gone = all.filter { $0.result?.reason?.kind == .displaced }
                let last = before.lastIndex { one in gone.contains { $0 === one } } ?? 0
                let waiting = bench.queue.pendingOperations
                let older = before[..<last].filter { one in
                    all.contains { $0 === one } && waiting.contains { $0 === one }
                }
                #expect(older.isEmpty)
                all.removeAll { $0.isEnded }
            }
            for one in all { one.resume() }
            bench.queue.cancelAll()
            bench.runAll()
            for attempt in attempts.entries { attempt.finish() }
            for one in all { _ = await one.outcome }
            await bench.queue.idle()
            attempts.removeAll()
        }
    }

    @Test(.promises("G32")) func `a line that grows and shrinks keeps all that wait, in order`() async {
        await forAll(.array(of: .int(in: 1...90), count: 1...6), cases: scaled(40)) { sizes in
            let bench = Bench()
            var (added, expected) = (0, [String]())
            for size in sizes {
                for _ in 0..<size {
                    bench.add("\(added)")
                    expected.append("\(added)")
                    added += 1
                }
                // More than half of the line leaves, so the next addition compacts it.
                while bench.target.count > 0, bench.log.entries.count < added * 3 / 4 {
                    bench.target.letGo()
                }
            }
            bench.runAll()
            #expect(bench.log.entries == expected)
            bench.queue.cancelAll()
            await bench.queue.idle()
        }
    }

    @Test(.promises("G32"), arguments: [COOperationQueue.Order.fifo, .lifo], [true, false])
    func `a queue that is resumed keeps to its order`(order: COOperationQueue.Order, isHeld: Bool) async {
        let bench = Bench(order)
        let holder = bench.holder()
        bench.add("first")
        bench.add("second")
        bench.queue.suspend()
        if !isHeld { holder.finish() }
        #expect(bench.target.count == 0)
        bench.add("third")
        bench.add("fourth")
        bench.runAll()
        #expect(bench.log.entries.isEmpty)
        bench.queue.resume()
        if isHeld { holder.finish() }
        bench.runAll()
        let all = ["first", "second", "third", "fourth"]
        #expect(bench.log.entries == (order == .fifo ? all : all.reversed()))
        await bench.queue.idle()
    }

    @Test(.promises("G32"), arguments: [COOperationQueue.Order.fifo, .lifo])
    func `operations resumed in any order regain their places`(order: COOperationQueue.Order) async {
        enum Step { case add, suspend, resume, take }
        let step = Generator.zip(
            .element(of: [Step.add, .suspend, .suspend, .resume, .resume, .take]), .int(in: 0...99))
        await forAll(.zip(.int(in: 1...80), step.array(count: 0...120)), cases: scaled(150)) { count, steps in
            let bench = Bench(order)
            let holder = bench.holder()
            var all: [COOperation<Void>] = []
            var (waiting, asleep, expected) = (Set<Int>(), Set<Int>(), [String]())
            /// The operation that has the slot, and has not begun.
            var posted: Int?
            var isHeld = true
            func giveSlot() {
                guard !isHeld, posted == nil, let next = order == .fifo ? waiting.min() : waiting.max()
                else { return }
                waiting.remove(next)
                posted = next
            }
            func add() {
                waiting.insert(all.count)
                all.append(bench.add("\(all.count)"))
            }
            func take() {
                if isHeld { holder.finish() } else { bench.target.letGo() }
                if let posted { expected.append("\(posted)") }
                (isHeld, posted) = (false, nil)
            }
            for _ in 0..<count { add() }
            for (step, index) in steps {
                switch step {
                case .add: add()
                case .suspend:
                    if waiting.isEmpty { break }
                    let one = waiting.sorted()[index % waiting.count]
                    waiting.remove(one)
                    asleep.insert(one)
                    try #require(all[one].suspend())
                case .resume:
                    if asleep.isEmpty { break }
                    let one = asleep.sorted()[index % asleep.count]
                    asleep.remove(one)
                    waiting.insert(one)
                    try #require(all[one].resume())
                case .take: take()
                }
                giveSlot()
                try #require(bench.log.entries == expected)
                try #require(bench.queue.runningOperations.count == (isHeld || posted != nil ? 1 : 0))
            }
            for one in asleep { all[one].cancel() }
            while isHeld || posted != nil {
                take()
                giveSlot()
            }
            try #require(bench.log.entries == expected)
            bench.runAll()
            await bench.queue.idle()
        }
    }

    @Test(.promises("G32"), .enabled(if: !isSanitized)) func `repeated resumes keep one place in the line`()
        async
    {
        // In a separate process, where nothing else allocates memory.
        await #expect(processExitsWith: .success) {
            let bench = Bench()
            let holder = bench.holder()
            let first = bench.add("first")
            bench.add("second")
            func residentBytes() throws -> Int {
                let fields = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(
                    separator: " ")
                return try #require(Int(fields[1])) * Int(getpagesize())
            }
            func comeAndGo(_ count: Int) throws {
                for _ in 0..<count { try #require(first.suspend() && first.resume()) }
            }
            try comeAndGo(10_000)
            let before = try residentBytes()
            try comeAndGo(100_000)
            let grown = try residentBytes() - before
            try #require(grown < 1_000_000, "\(grown) bytes")
            holder.finish()
            bench.runAll()
            try #require(bench.log.entries == ["first", "second"])
        }
    }

    @Test(.promises("G33")) func `a queue that is resumed starts what was in its line before`() async {
        let bench = Bench()
        let holder = bench.holder()
        let waiting = bench.add("waiting")
        bench.queue.suspend()
        holder.finish()
        bench.runAll()
        #expect(bench.log.entries.isEmpty && bench.queue.runningOperations.isEmpty)
        bench.queue.resume()
        bench.runAll()
        #expect(waiting.isFinished)
        bench.queue.cancelAll()
        await bench.queue.idle()
    }

    // MARK: Slots

    @Test(.promises("G33")) func `resuming takes no slot beyond the limit`() async {
        let bench = Bench()
        let first = bench.holder()
        #expect(first.suspend())
        let second = bench.holder()
        #expect(first.resume())
        #expect(first.state == .executing)
        #expect(bench.queue.runningOperations.map(\.id) == [second.id])
        bench.add("third")
        #expect(bench.target.count == 0)
        second.finish()
        #expect(bench.target.count == 1)
        bench.runAll()
        first.finish()
        await bench.queue.idle()
    }

    @Test(.promises("G33")) func `a raised limit fills its slots without any other event`() async {
        let bench = Bench()
        let holders = [bench.holder()]
        for index in 1...3 { bench.add("\(index)") }
        #expect(bench.target.count == 0)
        bench.queue.runningLimit = 3
        #expect(bench.target.count == 2)
        bench.runAll()
        for one in holders { one.finish() }
        #expect(bench.log.entries == ["1", "2", "3"])
        await bench.queue.idle()
    }

    @Test(.promises("G33")) func `a running block keeps its slot even if it is to be redone`() async {
        let queue = COOperationQueue(runningLimit: 1, on: elsewhere)
        let (begun, left) = (Mail<COOperation<Void>.Attempt>(), Gate())
        let again = operation(on: queue) { attempt in
            begun.send(attempt)
            if attempt.number == 1 { left.wait() } else { attempt.finish() }
        }
        let token = await begun.next()
        let other = operation(on: queue) {}
        #expect(token.rerun())
        #expect(again.state == .delayed)
        #expect(queue.runningOperations.map(\.id) == [again.id])
        #expect(queue.pendingOperations.map(\.id) == [other.id] && other.numberOfRuns == 0)
        left.open()
        #expect(await other.outcome.isFinished)
        #expect(await again.outcome.isFinished)
        await queue.idle()
    }

    @Test(.promises("G33")) func `a freed slot is not given to an operation about to be suspended`()
        async
    {
        let bench = Bench()
        let tokens = Mail<COOperation<Void>.Attempt>()
        let group = transactionalOperation(on: bench.queue) { group in
            group.operation { tokens.send($0) }
            group.operation { bench.log.add("second") }
        }
        bench.runAll()
        let token = await tokens.next()
        #expect(token.operation.hasLeftOpen)
        // The first child gives its slot back before the queue learns of the second child's gate.
        #expect(group.suspend())
        #expect(bench.target.count == 0 && bench.queue.runningOperations.isEmpty)
        #expect(group.resume())
        token.finish()
        bench.runAll()
        #expect(bench.log.entries == ["second"])
        #expect(await group.outcome.isFinished)
        await bench.queue.idle()
    }

    /// In a separate process: once a default queue has been set, children are created on a different path.
    @Test(.promises("G33"))
    func `children pass through the queue of their composite, where there never was a default queue`()
        async
    {
        await #expect(processExitsWith: .success) {
            COQueues.context = .empty  // no values are bound for children either
            let queue = COOperationQueue(runningLimit: 1)
            let tokens = Mail<COOperation<Void>.Attempt>()
            let group = transactionalOperation(on: queue) { group in
                for _ in 0..<2 { group.operation { tokens.send($0) } }
            }
            let first = await tokens.next()
            try #require(await eventually { first.operation.hasLeftOpen })
            try #require(queue.runningOperations.map(\.id) == [first.operation.id])
            try #require(queue.pendingOperations.count == 1)
            first.finish()
            await tokens.next().finish()
            try #require(await group.outcome.isFinished)
        }
    }

    @Test func `a ready-made child passes through the queue of its composite`() async throws {
        let bench = Bench()
        let ready = COOperation<Void> { _ in }
        let group = transactionalOperation(on: bench.queue) { group in try group.add(ready) }
        bench.runAll()
        #expect(await eventually { ready.hasLeftOpen })
        #expect(bench.queue.runningOperations.map(\.id) == [ready.id])
        #expect(bench.queue.operationCount == 2)
        ready.finish()
        bench.runAll()
        #expect(await group.outcome.isFinished)
        await bench.queue.idle()
    }

    @Test(.promises("R53")) func `a ready-made child runs where the queue of its composite says`()
        async throws
    {
        let lane = try SerialLane()
        let queue = COOperationQueue(on: lane)
        let isThere = Log<Bool>()
        let make: @Sendable () -> [OperationHandle<Void>] = {
            [
                COOperation<Void> {
                    isThere.add(lane.isCurrent)
                    $0.finish()
                },
                COCascade<Void> { cascade in
                    isThere.add(lane.isCurrent)
                    cascade.operation { isThere.add(lane.isCurrent) }
                },
            ]
        }
        let ready =
            make() + COQueues.withDefaultQueue(elsewhere, make)
            + COQueues.withDefaultQueue(COOperationQueue(on: elsewhere), make)
        let own = COOperation<Void>(on: elsewhere) {
            isThere.add(!lane.isCurrent)
            $0.finish()
        }
        let cascade = cascadeOperation(on: queue) { cascade in
            for one in ready + [own] { try cascade.add(one) }
        }
        #expect(await cascade.outcome.isFinished)
        #expect(isThere.entries == Array(repeating: true, count: 10))
        await queue.idle()
    }

    @Test(.promises("R53")) func `an operation with only a default queue may join another one`() async {
        let (queue, other) = (COOperationQueue(), COOperationQueue())
        let seen = Log<[Int]>()
        let one = COQueues.withDefaultQueue(other) {
            COOperation<Void> { attempt in
                seen.add([queue, other].map(\.operationCount))
                attempt.finish()
            }
        }
        let aimed = COOperation<Void>(on: other) { $0.finish() }
        #expect(queue.add(one) && !queue.add(aimed) && other.add(aimed))
        #expect(await one.outcome.isFinished)
        #expect(await aimed.outcome.isFinished)
        await queue.idle()
        await other.idle()
        #expect(seen.entries.map(\.first) == [1])
    }

    // MARK: Limits

    @Test(.promises("G33")) func `a full queue readmits its members`() async {
        let bench = Bench(runningLimit: 2, pendingLimit: 1)
        let again = operation(on: bench.queue) { attempt in
            if attempt.number == 2 { attempt.finish() }
        }
        let holder = bench.holder()
        let waiting = bench.add("waiting")
        bench.queue.runningLimit = 1
        #expect(again.rerun())
        #expect(bench.queue.pendingOperations.map(\.id).count == 2)
        bench.queue.pendingLimit = 0
        #expect(waiting.suspend() && waiting.resume())
        #expect(!waiting.isEnded && !again.isEnded)
        holder.finish()
        bench.runAll()
        #expect(waiting.isFinished && again.isFinished)
        await bench.queue.idle()
    }

    @Test(.promises("G33"), arguments: [COOperationQueue.Order.fifo, .lifo])
    func `a lowered limit refuses no operation that can run now`(order: COOperationQueue.Order) async {
        let bench = Bench(order)
        let asleep = (0..<2).map { _ in COOperation<Void> { $0.finish() } }
        for one in asleep { #expect(one.suspend() && bench.queue.add(one)) }
        bench.queue.pendingLimit = 1
        let newcomer = COOperation<Void> { $0.finish() }
        #expect(bench.queue.add(newcomer), "a slot is free")
        bench.runAll()
        let aimed = bench.add("aimed")
        bench.runAll()
        #expect(newcomer.isFinished && aimed.isFinished)
        for one in asleep { #expect(one.resume()) }
        bench.runAll()
        #expect(asleep.allSatisfy { $0.isFinished })
        await bench.queue.idle()
    }

    @Test(.promises("G32")) func `add to a full aggressive queue displaces the oldest`() async {
        let bench = Bench(.aggressiveLIFO, pendingLimit: 1)
        let holder = bench.holder()
        let (old, new) = (COOperation<Void> { $0.finish() }, COOperation<Void> { $0.finish() })
        #expect(bench.queue.add(old) && bench.queue.add(new))
        #expect(await old.outcome.reason?.kind == .displaced)
        #expect(bench.queue.pendingOperations.map(\.id) == [new.id])
        holder.finish()
        bench.runAll()
        #expect(new.isFinished)
        await bench.queue.idle()
    }

    @Test(.promises("G32")) func `requeueing in a full aggressive queue displaces the oldest`() async {
        let bench = Bench(.aggressiveLIFO, runningLimit: 2, pendingLimit: 1)
        let again = operation(on: bench.queue) { attempt in
            if attempt.number == 2 { attempt.finish() }
        }
        let holder = bench.holder()
        let old = bench.add("old")
        bench.queue.runningLimit = 1
        #expect(again.rerun())
        #expect(bench.queue.pendingOperations.map(\.id) == [again.id])
        #expect(old.result?.reason?.kind == .displaced && old.numberOfRuns == 0)
        bench.add("new")
        #expect(again.result?.reason?.kind == .displaced, "it is the oldest one now")
        #expect(again.numberOfRuns == 1)
        holder.finish()
        bench.runAll()
        #expect(bench.log.entries == ["new"])
        await bench.queue.idle()
    }

    @Test(.promises("G32"), arguments: [COOperationQueue.Order.fifo, .lifo])
    func `add refuses an operation that must wait if none may`(order: COOperationQueue.Order) async {
        let bench = Bench(order, pendingLimit: 0)
        let suspended = COOperation<Void> { $0.finish() }
        #expect(suspended.suspend())
        let (dependent, first) = (COOperation<Void> { $0.finish() }, COOperation<Void> { $0.finish() })
        #expect(dependent.addDependency(first))
        for one in [suspended, dependent] {
            #expect(!bench.queue.add(one), "a slot is free, but it could not take it")
            #expect(one.attempt == 0 && !one.isCancelled)
            #expect(bench.queue.operationCount == 0)
        }
        #expect(suspended.resume() && bench.queue.add(suspended))
        bench.runAll()
        #expect(first.start())
        #expect(await first.outcome.isFinished)
        #expect(await eventually { bench.queue.add(dependent) })
        bench.runAll()
        #expect(suspended.isFinished && dependent.isFinished)
        await bench.queue.idle()
    }

    @Test(.promises("G32"))
    func `of two concurrent adds for the last place, one succeeds, and is not refused later`() async {
        for round in 0..<scaled(3000) {
            let queue = COOperationQueue(runningLimit: 1, pendingLimit: round % 2)
            let held = round % 2 == 0 ? nil : operation(on: queue) { _ in }
            let all = (0..<2).map { _ in COOperation<Void> { _ in } }
            let answers = await atOnce(2) { queue.add(all[$0]) }
            #expect(answers.count { $0 } == 1)
            for (one, isAdded) in zip(all, answers) {
                #expect(one.state == .ready ? !isAdded : isAdded)
                #expect(!one.isCancelled)
                one.cancel()
            }
            held?.cancel()
            await queue.idle()
        }
    }

    #if DEBUG
        @Test func `a line keeps no trace of admitted operations or of earlier leavers`() async {
            // In a separate process, where no other test has queues.
            await #expect(processExitsWith: .success) {
                for order in [COOperationQueue.Order.fifo, .lifo] {
                    let bench = Bench(order)
                    func addSome() -> COOperation<Void> {
                        let holder = bench.holder()
                        for index in 0..<10 {
                            let one = bench.add("\(index)")
                            if index % 2 == 0 { one.cancel() }
                        }
                        return holder
                    }
                    addSome().finish()
                    bench.runAll()
                    precondition(bench.log.entries.count == 5)
                    let tickets = InstanceCount.live["tickets of queues"] ?? 0
                    precondition(tickets == 0, "\(tickets) tickets")
                    bench.log.removeAll()
                }
            }
        }

        @Test(.promises("G37"))
        func `displaced operations leave nothing behind, even in a queue that is always full`()
            async
        {
            // In a separate process, where no other test has queues.
            await #expect(processExitsWith: .success) {
                let bench = Bench(.aggressiveLIFO, pendingLimit: 1)
                let holder = bench.holder()
                for index in 0..<2000 { bench.add("\(index)") }
                let tickets = InstanceCount.live["tickets of queues"] ?? 0
                precondition(tickets < 100, "\(tickets) tickets")
                holder.finish()
                bench.runAll()
                precondition(bench.log.entries == ["1999"])
            }
        }
    #endif

    @Test func `children settled before their queue learns of their ends have left it`() async {
        /// Holds its work. Calls a hook of the test once, before it stores the next piece.
        final class Target: ExecutionTarget {
            let held = HoldingTarget()
            let first = Locked<(@Sendable () -> Void)?>(nil)
            var isCurrent: Bool { false }
            func submit(_ work: ExecutionWork) {
                first.withLock { $0.take() }?()
                held.submit(work)
            }
            func runAll() { while held.count > 0 { held.letGo() } }
        }
        let target = Target()
        let queue = COOperationQueue(runningLimit: 1, on: target)
        let children = Mail<COOperation<Void>>()
        let options = OperationOptions(handlerTarget: target.held)
        let group = transactionalOperation(on: queue, options: options) { group in
            children.send(group.operation { _ in })
            for _ in 0..<2 { group.operation {} }
        } cancellation: { _ in
        }
        target.runAll()
        let holder = await children.next()
        let other = operation(on: queue) {}
        #expect(holder.hasLeftOpen && queue.pendingOperations.count == 3)
        // The slot goes to the other operation before the queue learns of the last two children. Then, while the
        // decision of the composite is open, its end settles them.
        target.first.withLock { $0 = { group.cancel() } }
        #expect(holder.cancel())
        #expect(target.first.withLock { $0 == nil } && group.isCancelled)
        target.runAll()
        #expect(await other.outcome.isFinished)
        #expect(await eventually { queue.operationCount == 0 })
    }

    @Test func `children that have gone do not count as pending`() async {
        let bench = Bench(pendingLimit: 1)
        let group = transactionalOperation(on: bench.queue) { group in
            for index in 1...3 { group.operation { bench.log.add("\(index)") } }
        }
        bench.runAll()
        #expect(await group.outcome.isFinished)
        let holder = bench.holder()
        #expect(bench.queue.add(COOperation<Void> { $0.finish() }), "there is room for one")
        holder.finish()
        bench.runAll()
        await bench.queue.idle()
    }

    @Test(.promises("G32")) func `newcomers to an aggressive queue never displace children`() async {
        let bench = Bench(.aggressiveLIFO, pendingLimit: 1)
        let tokens = Mail<COOperation<Void>.Attempt>()
        let group = transactionalOperation(on: bench.queue) { group in
            group.operation { tokens.send($0) }
            for index in 1...3 { group.operation { bench.log.add("child \(index)") } }
        }
        bench.runAll()
        let token = await tokens.next()
        let old = bench.add("old")
        bench.add("new")
        #expect(old.isCancelled)
        token.finish()
        bench.runAll()
        #expect(bench.log.entries == ["child 1", "child 2", "child 3", "new"])
        #expect(await group.outcome.isFinished)
        await bench.queue.idle()
    }

    // MARK: Removal

    @Test(.promises("G32")) func `a displaced, refused or removed operation has ended on return`()
        async
    {
        let aggressive = Bench(.aggressiveLIFO, pendingLimit: 1)
        let holders = [aggressive.holder()]
        let displaced = aggressive.add("displaced")
        aggressive.add("new")
        #expect(displaced.isEnded && displaced.result?.reason?.kind == .displaced)
        let full = Bench(pendingLimit: 1)
        let others = [full.holder()]
        let pending = full.add("pending")
        let refused = full.add("refused")
        #expect(refused.isEnded && refused.result?.reason?.kind == .queueFull)
        #expect(full.queue.removeAllPending() == 1)
        #expect(pending.isEnded && pending.result?.reason?.kind == .removed)
        for one in holders + others { one.finish() }
        for bench in [aggressive, full] {
            bench.runAll()
            await bench.queue.idle()
        }
        #expect(aggressive.log.entries == ["new"] && full.log.entries.isEmpty)
    }

    @Test(.promises("G35")) func `removeAllPending leaves the children of composites where they are`() async {
        let bench = Bench()
        let tokens = Mail<COOperation<Void>.Attempt>()
        let group = transactionalOperation(on: bench.queue) { group in
            group.operation { tokens.send($0) }
            group.operation { bench.log.add("child") }
        }
        bench.runAll()
        let token = await tokens.next()
        let pending = bench.add("pending")
        #expect(bench.queue.removeAllPending() == 1)
        #expect(pending.isCancelled)
        token.finish()
        bench.runAll()
        #expect(await group.outcome.isFinished)
        #expect(bench.log.entries == ["child"])
        await bench.queue.idle()
    }

    @Test(.promises("G35"))
    func `removeAllPending ends all of them before a handler's target can start one`() async {
        let bench = Bench()
        let holder = bench.holder()
        let meddler = MeddlingTarget {
            holder.finish()
            bench.runAll()
        }
        let first = COOperation<Void>(on: bench.queue, options: OperationOptions(handlerTarget: meddler))
        first.onOutcome { _ in }
        first.run { $0.finish() }
        let second = bench.add("second")
        #expect(bench.queue.removeAllPending() == 2)
        #expect(first.isCancelled && second.isCancelled && bench.log.entries.isEmpty)
        bench.runAll()
        await bench.queue.idle()
    }

    // MARK: Idle

    @Test func `a waiter for an idle queue resumes once, even if the queue gets new work`() async {
        let bench = Bench()
        let executor = StepExecutor()
        bench.add("first")
        let idle = Task(executorPreference: executor) { await bench.queue.idle() }
        executor.runAll()  // it waits now
        bench.runAll()
        bench.add("second")
        bench.runAll()
        executor.runAll()
        await idle.value
        #expect(bench.log.entries == ["first", "second"])
        await bench.queue.idle()
    }
}

/// Calls a hook when it is given work, then runs the work on the calling thread.
private final class MeddlingTarget: ExecutionTarget {
    private let meddle: @Sendable () -> Void
    init(_ meddle: @escaping @Sendable () -> Void) { self.meddle = meddle }
    var isCurrent: Bool { false }
    func submit(_ work: ExecutionWork) {
        meddle()
        work.run()
    }
}
