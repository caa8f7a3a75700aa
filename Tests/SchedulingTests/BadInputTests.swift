// Mistakes of callers: every way to submit to a scheduler that is shut down, invalid arguments, and misuse that
// stops the process with a message. ConfigurationTests and ShutdownTests cover the rest.

import CScheduler
import Glibc
import PropertyTesting
import Scheduling
import PropertyTestingSupport
import Testing

/// The ways to submit a body to a scheduler.
private enum Way: CaseIterable, Sendable {
    case closure, counted, bulk, countedBulk, range, forEach, lane, countedLane

    /// Submits bodies that each hold a token, and run `body`.
    func submit(
        to scheduler: Scheduler, lane: SerialLane, counter: CompletionCounter, token: Token,
        _ body: @escaping @Sendable () -> Void
    ) throws {
        let holding: @Sendable () -> Void = {
            body()
            withExtendedLifetime(token) {}
        }
        let holdingIndexed: @Sendable (Int) -> Void = { _ in holding() }
        switch self {
        case .closure: try scheduler.submit(holding)
        case .counted: try scheduler.submit(in: counter, holding)
        case .bulk: try scheduler.submit(contentsOf: [holding, holding, holding])
        case .countedBulk: try scheduler.submit(contentsOf: [holding, holding, holding], in: counter)
        case .range: try scheduler.submit(0..<100, in: counter, holdingIndexed)
        case .forEach: try scheduler.forEach(0..<100, holdingIndexed)
        case .lane: try lane.submit(holding)
        case .countedLane: try lane.submit(in: counter, holding)
        }
    }
}

/// The numbers of calls of the functions below.
private let cRuns = Count()
private let cFinals = Count()

private let countRun: csched_function = { _, _, _ in cRuns.add() }

private func operation(in counter: OpaquePointer?) -> csched_operation {
    csched_operation(run: countRun, context: nil, extra: nil, counter: counter)
}

private func configuration(workers: UInt32 = 1, capacity: UInt64 = .max) -> csched_configuration {
    var configuration = csched_configuration_default()
    configuration.workers = workers
    configuration.capacity = capacity
    return configuration
}

@Suite(.inTurn) struct BadInputTests {
    /// S14, for every way: the code, the closure that is released, the body that is not called, the counter that
    /// is unchanged.
    @Test(arguments: Way.allCases, Scheduler.CapacityPolicy.allCases)
    fileprivate func `after a shutdown every way to submit is refused, and its closure released`(
        way: Way, policy: Scheduler.CapacityPolicy
    ) throws {
        for capacity in [nil, 1] {
            let scheduler = try Scheduler(.init(workers: 2, capacity: capacity, whenFull: policy))
            let lane = try SerialLane(on: scheduler)
            let counter = try CompletionCounter()
            let ran = Count()
            let released = Count()
            try scheduler.shutdown()
            for round in 1...3 {
                #expect(
                    code {
                        try way.submit(
                            to: scheduler, lane: lane, counter: counter, token: Token(released)
                        ) { ran.add() }
                    } == .closed)
                #expect(released.value == round)
            }
            #expect(ran.value == 0)
            #expect(counter.outstanding == 0)
            #expect(scheduler.statistics.submitted == 0)
        }
    }

    @Test func `after a shutdown an asynchronous forEach is refused, and its closure released`() async throws
    {
        let scheduler = try Scheduler(.workers(1))
        try await scheduler.shutdown()
        let released = Count()
        let ran = Count()
        do {
            let token = Token(released)
            await #expect(throws: SchedulerError.self) {
                try await scheduler.forEach(0..<10) { _ in
                    ran.add()
                    withExtendedLifetime(token) {}
                }
            }
        }
        #expect(released.value == 1)
        #expect(ran.value == 0)
    }

    /// A body that still runs while its scheduler is closed from outside may submit; no other caller may.
    @Test func `a closing scheduler accepts from its own bodies alone`() throws {
        let scheduler = try Scheduler(.workers(1))
        let other = try Scheduler(.workers(1))
        let (started, gate) = (Gate(), Gate())
        let ran = Count()
        try scheduler.submit {
            started.open()
            gate.wait()
            #expect(code { try scheduler.submit { ran.add() } } == nil)
        }
        started.wait()
        _ = concurrently(2) { thread in
            if thread == 0 { return code { try scheduler.shutdown() } }
            #expect(eventually { code { try scheduler.submit {} } == .closed })
            let refused = Count()
            #expect(
                code {
                    try other.submit { if code({ try scheduler.submit {} }) == .closed { refused.add() } }
                } == nil)
            #expect(code { try other.shutdown() } == nil)
            #expect(refused.value == 1)
            gate.open()
            return nil
        }
        #expect(ran.value == 1)
    }

    /// The same through C: unless the result is CSCHED_OK, the caller still owns the operation.
    @Test func `after a shutdown the C functions call nothing`() throws {
        var configuration = configuration()
        var created: OpaquePointer?
        try #require(csched_scheduler_create(&configuration, &created) == .ok)
        let scheduler = try #require(created)
        let counter = try #require(csched_completion_create())
        #expect(csched_scheduler_shutdown(scheduler, .max) == .ok)
        let lane = try #require(csched_lane_create(scheduler))
        #expect(csched_submit(scheduler, operation(in: counter)) == .closed)
        #expect(csched_submit_exempt(scheduler, operation(in: counter)) == .closed)
        let three = Array(repeating: operation(in: counter), count: 3)
        #expect(csched_submit_bulk(scheduler, three, 3) == .closed)
        #expect(csched_submit_bulk(scheduler, three, 0) == .closed)
        let range = csched_submit_range(
            scheduler, 10, 0, { _, _ in cRuns.add() }, { _, _ in cFinals.add() }, nil, counter)
        #expect(range == .closed)
        #expect(csched_lane_submit(lane, operation(in: counter)) == .closed)
        #expect(csched_lane_submit_surely(lane, operation(in: counter), scheduler) == .closed)
        #expect(csched_scheduler_resize(scheduler, 3) == .closed)
        #expect(csched_scheduler_shutdown(scheduler, 0) == .ok)
        #expect(csched_completion_outstanding(counter) == 0)
        csched_lane_release(lane)
        csched_scheduler_destroy(scheduler)
        csched_completion_release(counter)
        #expect(cRuns.value == 0)
        #expect(cFinals.value == 0)
    }

    @Test func `an invalid scheduler is not made`() {
        let impossible: [(csched_configuration, csched_status)] = [
            (configuration(workers: 0), .invalidWorkers), (configuration(workers: 257), .invalidWorkers),
            (configuration(workers: .max - 1), .invalidWorkers),
            (configuration(capacity: 0), .invalidCapacity),
            (configuration(workers: 0, capacity: 0), .invalidWorkers),
        ]
        let untouched = OpaquePointer(bitPattern: 0x1234)
        for (wish, status) in impossible {
            var wish = wish
            var scheduler = untouched
            #expect(csched_scheduler_create(&wish, &scheduler) == status)
            #expect(scheduler == untouched)
        }
    }

    @Test func `empty and reversed inputs do nothing`() throws {
        try withScheduler(.workers(1)) { scheduler in
            let counter = try CompletionCounter()
            try scheduler.submit(contentsOf: [], in: counter)
            try scheduler.submit(0..<0, in: counter) { _ in Issue.record("ran") }
            try scheduler.forEach(5..<5) { _ in Issue.record("ran") }
            try scheduler.forEach(Int.max..<Int.max) { _ in Issue.record("ran") }
            #expect(counter.wait(timeout: .seconds(20)) == .completed)
        }
    }

    @Test func `a range at either end of the integers is used as is`() throws {
        try withScheduler(.workers(2)) { scheduler in
            for first in [Int.min, Int.max - 100] {
                let sum = Count()
                try scheduler.forEach(first..<first + 100) { sum.add($0 - first) }
                #expect(sum.value == 4950)
            }
        }
    }

    @Test func `every status has a sentence of its own`() {
        let all: [csched_status] = [
            .ok, .outOfMemory, .invalidWorkers, .invalidCapacity, .invalidEnvironment, .threadCreationFailed,
            .closed, .full, .wouldDeadlock,
        ]
        let sentences = all.map { String(cString: csched_status_message($0)) }
        #expect(Set(sentences).count == all.count)
        #expect(sentences.allSatisfy { !$0.isEmpty && $0 != "unknown status" })
    }

    @Test(arguments: [Scheduler.ShutdownPolicy.drain, .cancelPending, .deadline(.seconds(5))])
    func `a shutdown in an operation of a lane would deadlock, and says so`(
        policy: Scheduler.ShutdownPolicy
    ) throws {
        try withScheduler(.workers(2)) { scheduler in
            let lane = try SerialLane(on: scheduler)
            let refusals = Count()
            try lane.submit {
                if code({ try scheduler.shutdown(policy) }) == .wouldDeadlock { refusals.add() }
            }
            try lane.drain()
            #expect(refusals.value == 1)
            try scheduler.submit {}  // submitting still works
        }
    }

    /// The lane's operation is an outer frame on the stack. It waits, helping with anything, and so runs an
    /// operation of another lane, which drains the first lane.
    @Test func `draining a lane from work run inside its operation would deadlock, and says so`() throws {
        try withScheduler(.workers(1)) { scheduler in
            let (lane, other) = try (SerialLane(on: scheduler), SerialLane(on: scheduler))
            let refusals = Count()
            let counter = try CompletionCounter()
            try lane.submit {
                do {
                    try other.submit(in: counter) {
                        if code({ try lane.drain() }) == .wouldDeadlock { refusals.add() }
                    }
                } catch { Issue.record(error) }
                counter.wait(helping: .anybody)
            }
            try lane.drain()
            #expect(refusals.value == 1)
        }
    }
}

/// Returns the text that a process wrote to its standard error before it was stopped.
func sentence(_ result: ExitTest.Result?) -> String {
    String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
}

@Suite(.inTurn) struct MisuseTests {
    @Test func `destroying a scheduler on its own worker stops the process`() async {
        let result = await #expect(
            processExitsWith: .signal(SIGABRT), observing: [\.standardErrorContent]
        ) {
            var configuration = csched_configuration_default()
            configuration.workers = 2
            var scheduler: OpaquePointer?
            try #require(csched_scheduler_create(&configuration, &scheduler) == .ok)
            let destroy = csched_operation(
                run: { scheduler, _, _ in csched_scheduler_destroy(OpaquePointer(scheduler!)) },
                context: UnsafeMutableRawPointer(scheduler), extra: nil, counter: nil)
            #expect(csched_submit(scheduler!, destroy) == .ok)
            Gate().wait()  // for ever: the operation stops the process
        }
        #expect(sentence(result).contains("called on one of the scheduler's workers"))
    }

    @Test func `resuming what is not suspended says so`() async {
        let result = await #expect(
            processExitsWith: .signal(SIGABRT), observing: [\.standardErrorContent]
        ) {
            let scheduler = try Scheduler(.workers(1))
            scheduler.suspend()
            scheduler.resume()
            scheduler.resume()
        }
        #expect(sentence(result).contains("csched_scheduler_resume: not suspended"))
    }

    @Test func `leaving more than entering is reported`() async {
        let result = await #expect(
            processExitsWith: .signal(SIGABRT), observing: [\.standardErrorContent]
        ) {
            let counter = try CompletionCounter()
            counter.enter(2)
            for _ in 0..<3 { counter.leave() }
        }
        #expect(sentence(result).contains("left more often than entered"))
    }

    #if DEBUG
        @Test func `a body that awaits its own counter is reported`() async {
            let result = await #expect(
                processExitsWith: .signal(SIGABRT), observing: [\.standardErrorContent]
            ) {
                let scheduler = try Scheduler(.workers(1))
                let counter = try CompletionCounter()
                try scheduler.submit(in: counter) { counter.wait() }
                Gate().wait()  // for ever: the operation stops the process
            }
            #expect(sentence(result).contains("waits for a counter in which that body itself is counted"))
        }

        @Test func `a body awaiting one below it on the stack is reported`() async {
            let result = await #expect(
                processExitsWith: .signal(SIGABRT), observing: [\.standardErrorContent]
            ) {
                let scheduler = try Scheduler(.workers(1))
                let (outer, middle, inner) = try (
                    CompletionCounter(), CompletionCounter(), CompletionCounter()
                )
                try scheduler.submit(in: outer) {
                    try? scheduler.submit(in: middle) {
                        try? scheduler.submit(in: inner) { outer.wait() }
                        inner.wait()
                    }
                    middle.wait()
                }
                Gate().wait()  // for ever: an operation stops the process
            }
            #expect(
                sentence(result).contains(
                    "waits for a counter in which the body 2 below it on the stack is counted"))
        }
    #endif

    @Test func `releasing a counter twice says so`() async {
        let result = await #expect(
            processExitsWith: .signal(SIGABRT), observing: [\.standardErrorContent]
        ) {
            let counter = try #require(csched_completion_create())
            csched_completion_enter(counter, 1)
            csched_completion_release(counter)
            csched_completion_release(counter)
        }
        #expect(sentence(result).contains("released twice"))
    }

    @Test func `shutting the shared scheduler down says so`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try await Scheduler.shared.shutdown()
        }
        #expect(sentence(result).contains("the shared scheduler is never shut down"))
    }
}
