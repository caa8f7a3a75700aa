// Lock-freedom, seen from outside: a thread that is stopped anywhere in a submission does not hold up the operations
// of other threads. A signal stops it, in a handler that waits until it may continue. The test has its own process,
// because signals belong to processes.

import CScheduler
import Glibc
import PropertyTesting
import Synchronization
import PropertyTestingSupport
import Testing

extension Stress {
    @Suite(.inTurn) struct StoppedSubmitter {
        @Test(.enabled(if: !isAddressSanitized))
        func `a worker serves others while a submitter is stopped`() async {
            await #expect(processExitsWith: .success) {
                try stopSubmitter(workers: 1, rounds: scaled(isThreadSanitized ? 100 : 1000))
            }
        }

        @Test(.enabled(if: !isAddressSanitized))
        func `two workers serve others while a submitter is stopped`() async {
            await #expect(processExitsWith: .success) {
                try stopSubmitter(workers: 2, rounds: scaled(isThreadSanitized ? 100 : 1000))
            }
        }
    }
}

// A signal handler is a C function, and can reach only globals. `nonisolated(unsafe)`: both are written before the first
// signal.
nonisolated(unsafe) private var stopped: Int32 = -1
nonisolated(unsafe) private var goOn: Int32 = -1

/// The state that the stopped thread and its controller share. C operations instead of closures: a closure's memory comes
/// from malloc, whose locks a stopped thread may hold.
private final class Shared: Sendable {
    nonisolated(unsafe) let scheduler: OpaquePointer
    nonisolated(unsafe) let counter: OpaquePointer
    let thread = Atomic(UInt(0))
    let submissions = Atomic(0)
    let isInside = Atomic(false)
    let stop = Atomic(false)

    init(scheduler: OpaquePointer, counter: OpaquePointer) {
        self.scheduler = scheduler
        self.counter = counter
    }
}

private let countRun: csched_function = { context, _, _ in
    context!.assumingMemoryBound(to: Int.self).withMemoryRebound(to: Atomic<Int>.self, capacity: 1) {
        _ = $0.pointee.add(1, ordering: .relaxed)
    }
}

private func submitUntilStopped(_ shared: Shared, _ runs: UnsafeMutableRawPointer) {
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGUSR1)
    // The threads of the test's pool, and so their children, block signals.
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    let operation = csched_operation(run: countRun, context: runs, extra: nil, counter: shared.counter)
    func submitMany() {
        for _ in 0..<4096 {
            shared.isInside.store(true, ordering: .sequentiallyConsistent)
            let status = csched_submit(shared.scheduler, operation)
            shared.isInside.store(false, ordering: .sequentiallyConsistent)
            precondition(status == .ok)
            shared.submissions.add(1, ordering: .relaxed)
        }
        precondition(csched_completion_wait(shared.counter, 20_000_000_000) == .completed)
    }
    // Before the first stop, because Swift's runtime creates the metadata of the types used here under a process-wide
    // lock.
    submitMany()
    shared.thread.store(UInt(pthread_self()), ordering: .releasing)
    while !shared.stop.load(ordering: .relaxed) { submitMany() }
}

private func stopSubmitter(workers: UInt32, rounds: Int) throws {
    var configuration = csched_configuration_default()
    configuration.workers = workers
    var created: OpaquePointer?
    try #require(csched_scheduler_create(&configuration, &created) == .ok)
    let scheduler = try #require(created)
    let theirs = try #require(csched_completion_create())
    let ours = try #require(csched_completion_create())
    let runs = UnsafeMutablePointer<Int>.allocate(capacity: 2)
    runs.initialize(repeating: 0, count: 2)
    let shared = Shared(scheduler: scheduler, counter: theirs)

    var told: [Int32] = [0, 0]
    var tell: [Int32] = [0, 0]
    try #require(pipe(&told) == 0 && pipe(&tell) == 0)
    stopped = told[1]
    goOn = tell[0]
    var action = sigaction()
    action.sa_flags = SA_RESTART
    action.__sigaction_handler.sa_handler = { _ in
        let before = errno
        var byte: UInt8 = 0
        _ = write(stopped, &byte, 1)
        while read(goOn, &byte, 1) < 0 && errno == EINTR {}
        errno = before
    }
    try #require(sigaction(SIGUSR1, &action, nil) == 0)

    let theirRuns = UnsafeMutableRawPointer(runs)
    nonisolated(unsafe) let argument = theirRuns
    let thread = startThread(for: "stopSubmitter") { submitUntilStopped(shared, argument) }
    while shared.thread.load(ordering: .acquiring) == 0 { sched_yield() }

    let operation = csched_operation(run: countRun, context: runs + 1, extra: nil, counter: ours)
    var stoppedInside = 0
    var submitted = 0
    while stoppedInside < rounds {
        // A signal that arrives while the thread waits for its operations proves nothing.
        while !shared.isInside.load(ordering: .relaxed) { sched_yield() }
        for _ in 0..<Int.random(in: 0...100) { _ = csched_completion_outstanding(ours) }
        try #require(pthread_kill(thread, SIGUSR1) == 0)
        var byte: UInt8 = 0
        try #require(read(told[0], &byte, 1) == 1)
        if shared.isInside.load(ordering: .sequentiallyConsistent) { stoppedInside += 1 }
        for _ in 0..<Int.random(in: 1...5) {
            try #require(csched_submit(scheduler, operation) == .ok)
            submitted += 1
        }
        try #require(
            csched_completion_wait(ours, 20_000_000_000) == .completed, "after \(stoppedInside) stops")
        try #require(write(tell[1], &byte, 1) == 1)
    }
    shared.stop.store(true, ordering: .relaxed)
    pthread_join(thread, nil)
    csched_scheduler_destroy(scheduler)
    #expect(runs[0] == shared.submissions.load(ordering: .relaxed))
    #expect(runs[1] == submitted)
    csched_completion_release(theirs)
    csched_completion_release(ours)
    runs.deallocate()
}
