import CompositeOperationsTestSupport
import Glibc
import Observability
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Synchronization
import Testing

/// Blocks in a function whose name is on the stack.
@inline(never) private func waitsAtItsGate(_ gate: Gate) {
    gate.wait()
    withExtendedLifetime(gate) {}
}

@inline(never) private func spinsUntilOpened(_ isOpened: borrowing Atomic<Bool>) {
    while !isOpened.load(ordering: .acquiring) {}
}

private final class Flag: Sendable {
    let isSet = Atomic(false)
}

@Suite(.inTurn, .serialized) struct StallTests {
    @Test(arguments: [true, false])
    func `a body that runs too long is reported once, with stack`(blocks: Bool) throws {
        let scheduler = try Scheduler(.init(workers: 1, name: "stall-a"))
        let later = try Scheduler(.init(workers: 1, name: "stall-e"))
        let (leave, told, toldLater) = (Gate(), Gate(), Gate())
        let stalls = Locked<[Stall]>([])
        let watch = StallWatch(body: .milliseconds(80), wait: .seconds(60), stacks: true) { stall in
            if stall.scheduler == "stall-e" { toldLater.open() }
            guard stall.scheduler == "stall-a" else { return }
            stalls.withLock { $0.append(stall) }
            told.open()
        }
        let spinning = Flag()
        try scheduler.submit { blocks ? waitsAtItsGate(leave) : spinsUntilOpened(spinning.isSet) }
        told.wait()
        try later.submit { leave.wait() }  // begins now, so it is reported a full limit later
        toldLater.wait()
        leave.open()
        spinning.isSet.store(true, ordering: .releasing)
        watch.stop()
        try scheduler.shutdown()
        try later.shutdown()
        let found = stalls.withLock { $0 }
        #expect(found.count == 1)
        let stall = try #require(found.first)
        #expect(stall.duration >= .milliseconds(80))
        guard case .body(let worker, let stack) = stall.kind else {
            Issue.record("\(stall)")
            return
        }
        #expect(worker.activity == (blocks ? .blocks : .runs))
        #expect(try #require(stack).reason == nil)
        #expect(
            try #require(stack).functions.contains {
                $0.contains(blocks ? "waitsAtItsGate" : "spinsUntilOpened")
            },
            "\(stall)")
        #expect("\(stall)".hasPrefix("a body on worker 0 of scheduler 'stall-a', thread \(worker.thread), "))
    }

    @Test func `an operation that waits too long is reported; running ones are not`() throws {
        let scheduler = try Scheduler(.init(workers: 1, name: "stall-b", spareWorkers: 0))
        let (leave, told) = (Gate(), Gate())
        let stalls = Locked<[Stall]>([])
        let watch = StallWatch(body: .seconds(60), wait: .milliseconds(80)) { stall in
            guard stall.scheduler == "stall-b" else { return }
            if stalls.withLock({ stalls in
                stalls.append(stall)
                return stalls.count == 2
            }) {
                told.open()
            }
        }
        let began = Gate()
        try scheduler.submit {
            for _ in 1...3 { try! scheduler.submit {} }
            began.open()
            leave.wait()
        }
        began.wait()
        try scheduler.submit {}
        try scheduler.submit {}
        told.wait()
        leave.open()
        watch.stop()
        try scheduler.shutdown()
        let sentences = stalls.withLock { $0 }.map { "\($0)" }
        #expect(
            sentences.contains {
                $0.contains("in the queues of worker 0 of scheduler 'stall-b' has waited")
                    && $0.hasSuffix("; 3 are there")
            })
        #expect(
            sentences.contains {
                $0.contains("in the inboxes of default priority of scheduler 'stall-b'")
                    && $0.hasSuffix("; 2 are there")
            })
        #expect(sentences.count == 2)
    }

    @Test func `a flood that is served in turn is no stall`() throws {
        let scheduler = try Scheduler(.init(workers: 2, name: "stall-c"))
        let stalls = Locked<[Stall]>([])
        let watch = StallWatch(body: .seconds(20), wait: .seconds(20)) { stall in
            if stall.scheduler == "stall-c" { stalls.withLock { $0.append(stall) } }
        }
        let counter = try CompletionCounter()
        for _ in 0..<max(1, Int(20_000 * stressScale)) { try scheduler.submit(in: counter) {} }
        counter.wait()
        watch.stop()
        watch.stop()
        try scheduler.shutdown()
        #expect(stalls.withLock { $0.isEmpty })
    }

    @Test func `schedulers of one name are distinct, and without stacks no thread is asked`() throws {
        let schedulers = try (0..<2).map { _ in try Scheduler(.init(workers: 1, name: "stall-f")) }
        let (leave, told) = (Gate(), Gate())
        let stalls = Locked<[Stall]>([])
        let watch = StallWatch(body: .milliseconds(40), wait: .seconds(60)) { stall in
            guard stall.scheduler == "stall-f" else { return }
            if stalls.withLock({ stalls in
                stalls.append(stall)
                return stalls.count == 2
            }) {
                told.open()
            }
        }
        for scheduler in schedulers { try scheduler.submit { leave.wait() } }
        told.wait()
        leave.open()
        watch.stop()
        for scheduler in schedulers { try scheduler.shutdown() }
        for stall in stalls.withLock({ $0 }) {
            guard case .body(let worker, nil) = stall.kind else {
                Issue.record("\(stall)")
                continue
            }
            #expect("\(stall)".hasSuffix(" at least"))
            #expect("\(stall)".contains("thread \(worker.thread), "))
        }
    }

    @Test func `waiting for a resume is no stall, but then waiting for a worker is one`() throws {
        let suspended = try Scheduler(.init(workers: 1, name: "stall-g", spareWorkers: 0))
        let other = try Scheduler(.init(workers: 1, name: "stall-h", spareWorkers: 0))
        let (leave, began, toldOther, told) = (Gate(), Gate(), Gate(), Gate())
        let stalls = Locked<[String]>([])
        let watch = StallWatch(body: .seconds(60), wait: .milliseconds(60)) { stall in
            if stall.scheduler == "stall-h" { toldOther.open() }
            guard stall.scheduler == "stall-g" else { return }
            stalls.withLock { $0.append("\(stall)") }
            told.open()
        }
        suspended.suspend()
        try suspended.submit {
            began.open()
            leave.wait()
        }
        try suspended.submit(priority: .background) {}
        let begun = Gate()
        try other.submit {
            begun.open()
            leave.wait()
        }
        begun.wait()
        try other.submit {}  // reported only after a report for the suspended scheduler would have come
        toldOther.wait()
        #expect(stalls.withLock { $0.isEmpty })
        suspended.resume()
        began.wait()
        told.wait()
        leave.open()
        watch.stop()
        try suspended.shutdown()
        try other.shutdown()
        let sentences = stalls.withLock { $0 }
        #expect(sentences.count == 1)
        #expect(
            try #require(sentences.first).contains(
                "in the inboxes of background priority of scheduler 'stall-g'"))
    }

    @Test func `a watch may be released under a lock its reports take`() throws {
        let scheduler = try Scheduler(.init(workers: 1, name: "stall-i"))
        let (leave, telling, told) = (Gate(), Gate(), Gate())
        let lock = Locked(())
        let watch = Locked<StallWatch?>(
            StallWatch(body: .milliseconds(20), wait: .seconds(60)) { stall in
                guard stall.scheduler == "stall-i" else { return }
                telling.open()
                lock.withLock { _ in told.open() }
            })
        try scheduler.submit { leave.wait() }
        lock.withLock { _ in
            telling.wait()
            watch.withLock { $0 = nil }
        }
        told.wait()
        leave.open()
        try scheduler.shutdown()
    }

    @Test func `a watch may be stopped in its report`() throws {
        let scheduler = try Scheduler(.init(workers: 1, name: "stall-d"))
        let (leave, told) = (Gate(), Gate())
        let own = Locked<StallWatch?>(nil)
        let watch = StallWatch(body: .milliseconds(20), wait: .seconds(60)) { stall in
            guard stall.scheduler == "stall-d", let watch = own.withLock({ $0.take() }) else { return }
            watch.stop()
            told.open()
        }
        own.withLock { $0 = watch }
        try scheduler.submit { leave.wait() }
        told.wait()
        leave.open()
        try scheduler.shutdown()
    }

    @Test func `the stack of a missing thread has a reason`() {
        let stack = ThreadStack(of: 4_194_303)
        #expect(stack.functions == [])
        #expect(stack.reason == "there is no thread 4194303")
        #expect("\(stack)" == "there is no thread 4194303")
    }

    @Test func `where SIGPROF has another handler no stack is read`() async {
        await #expect(processExitsWith: .success) {
            signal(SIGPROF) { _ in }
            let stack = ThreadStack(of: Int(getpid()))
            precondition(stack.reason == "SIGPROF, which asks a thread for its stack, has another handler")
        }
    }

    @Test func `invalid limits trap with a sentence`() async {
        await #expect(processExitsWith: .failure) { _ = StallWatch(body: .zero) }
    }
}

@Suite struct SchedulerStateTests {
    @Test func `a scheduler is listed with its workers' activities and waiters`() throws {
        let scheduler = try Scheduler(.init(workers: 1, name: "state-a", spareWorkers: 0))
        let (began, leave) = (Gate(), Gate())
        try scheduler.submit {
            Scheduler.blocking {
                began.open()
                leave.wait()
            }
        }
        began.wait()
        for priority in [Scheduler.Priority.high, .default, .default] {
            try scheduler.submit(priority: priority) {}
        }
        let state = try #require(SchedulerState.all().first { $0.name == "state-a" })
        #expect(state.queues.map(\.priority) == ["high", "default", "background"])
        #expect(state.queues.map(\.waiting) == [1, 2, 0])
        #expect(state.queues.map(\.submitted) == [1, 3, 0])
        #expect(!state.isSuspended && !state.isClosing)
        #expect(state.timersDueIn == nil)
        let worker = try #require(state.workers.first)
        #expect(worker.executed == 0)
        #expect(
            "\(state)" == """
                scheduler 'state-a': 1 of high priority, 2 of default priority wait
                  worker 0, thread \(worker.thread): blocks, 0 executed
                """)
        leave.open()
        try scheduler.shutdown()
        let after = try #require(SchedulerState.all().first { $0.name == "state-a" })
        #expect(after.isClosing)
        #expect(after.queues.map(\.waiting) == [0, 0, 0])
    }

    @Test func `a scheduler's state shows its next timer and suspension`() async throws {
        let scheduler = try Scheduler(.init(workers: 1, name: "state-c"))
        func state() -> SchedulerState? { SchedulerState.all().first { $0.name == "state-c" } }
        let timer = try scheduler.submit(after: .seconds(3_600)) {}
        #expect(await eventually { (state()?.timersDueIn).map { 3_000 < $0 && $0 <= 3_601 } == true })
        scheduler.suspend()
        #expect(try #require(state()).isSuspended)
        #expect(try #require(state()).description.contains(", suspended, its timers are due in "))
        scheduler.resume()
        timer.cancel()
        try await scheduler.shutdown()
    }

    @Test func `schedulers that are gone are not listed`() throws {
        do { _ = try Scheduler(.init(workers: 1, name: "state-b")) }
        #expect(!SchedulerState.all().contains { $0.name == "state-b" })
    }
}
