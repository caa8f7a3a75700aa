// After a fork the child has no workers: its copies of the schedulers are closed, and the parent's continue.

import CScheduler
import Glibc
import PropertyTesting
import Testing

@Test(.enabled(if: !isThreadSanitized)) func `a forked child finds its schedulers closed`() async {
    await #expect(processExitsWith: .success) { try forkAndSubmit() }
}

@Test(.enabled(if: !isThreadSanitized)) func `a forked child makes a scheduler of its own`() async {
    await #expect(processExitsWith: .success) { try forkAndCreate() }
}

@Test(.enabled(if: !isThreadSanitized)) func `an operation forks a non-worker child`() async {
    await #expect(processExitsWith: .success) { try forkInside() }
}

@Test(.enabled(if: !isThreadSanitized))
func `a child that is forked while observers are released makes a scheduler of its own`() async {
    await #expect(processExitsWith: .success) { try forkWhileReleased() }
}

private let doNothing: csched_function = { _, _, _ in }

private func operation() -> csched_operation {
    csched_operation(run: doNothing, context: nil, extra: nil, counter: nil)
}

private func createScheduler() throws -> OpaquePointer {
    var configuration = csched_configuration_default()
    configuration.workers = 2
    var scheduler: OpaquePointer?
    try #require(csched_scheduler_create(&configuration, &scheduler) == .ok)
    return try #require(scheduler)
}

/// Runs `body` in a forked child; returns whether it returned true there.
private func inChild(_ body: () -> Bool) throws -> Bool {
    let child = fork()
    try #require(child >= 0)
    if child == 0 { _exit(body() ? 0 : 1) }
    var status: Int32 = -1
    while waitpid(child, &status, 0) < 0 && errno == EINTR {}
    return status == 0
}

private func forkAndSubmit() throws {
    let scheduler = try createScheduler()
    #expect(csched_submit(scheduler, operation()) == .ok)
    for _ in 0..<20 {
        let closed = try inChild {
            defer { csched_scheduler_destroy(scheduler) }
            return csched_submit(scheduler, operation()) == .closed
        }
        #expect(closed)
        #expect(csched_submit(scheduler, operation()) == .ok)
    }
    csched_scheduler_destroy(scheduler)
}

/// The forking thread is a worker, but not in the child.
private func forkInside() throws {
    let scheduler = try createScheduler()
    let counter = try #require(csched_completion_create())
    var forking = operation()
    forking.counter = counter
    forking.context = UnsafeMutableRawPointer(scheduler)
    forking.run = { context, _, _ in
        let scheduler = OpaquePointer(context!)
        let closed = try? inChild {
            csched_scheduler_current() == nil && csched_submit(scheduler, operation()) == .closed
                && csched_scheduler_resize(scheduler, 3) == .closed
                && csched_scheduler_statistics(scheduler).workers == 2
                && csched_scheduler_shutdown(scheduler, UInt64.max) == .ok
        }
        #expect(closed == true)
    }
    #expect(csched_submit(scheduler, forking) == .ok)
    #expect(csched_completion_wait(counter, 20_000_000_000) == .completed)
    csched_completion_release(counter)
    csched_scheduler_destroy(scheduler)
}

private func forkAndCreate() throws {
    let scheduler = try createScheduler()
    #expect(try inChild(runsSomeOfItsOwn))
    csched_scheduler_destroy(scheduler)
}

private func runsSomeOfItsOwn() -> Bool {
    guard let own = try? createScheduler(), let counter = csched_completion_create() else { return false }
    var counted = operation()
    counted.counter = counter
    for _ in 0..<100 where csched_submit(own, counted) != .ok { return false }
    let outcome = csched_completion_wait(counter, 20_000_000_000)
    csched_scheduler_destroy(own)
    csched_completion_release(counter)
    return outcome == .completed
}

private let isReleasing = Gate()
private let mayRelease = Gate()

/// A thread waits for the release of an observer. In the child neither the thread nor the wait exists, and the memory
/// of the thread's stack is reused.
private func forkWhileReleased() throws {
    let scheduler = try createScheduler()
    var observer = csched_observer(
        notify: { _, _, _ in },
        release: { _ in
            isReleasing.open()
            // With a limit: liburcu blocks every fork until this has returned.
            _ = mayRelease.wait(timeout: .milliseconds(300))
        }, context: nil)
    #expect(csched_scheduler_observe(scheduler, &observer) == .ok)
    let address = UInt(bitPattern: scheduler)
    let destroys = startThread(for: "forkWhileReleased") {
        csched_scheduler_destroy(OpaquePointer(bitPattern: address)!)
    }
    isReleasing.wait()
    let works = try inChild {
        (0..<4).allSatisfy { _ in
            pthread_join(startThread(for: "forkWhileReleased") { overwriteStack() }, nil) == 0
                && runsSomeOfItsOwn() && observesOneOfItsOwn()
        }
    }
    mayRelease.open()
    pthread_join(destroys, nil)
    #expect(works)
}

private func observesOneOfItsOwn() -> Bool {
    guard let own = try? createScheduler() else { return false }
    var observer = csched_observer(notify: { _, _, _ in }, release: { _ in }, context: nil)
    let observed = csched_scheduler_observe(own, &observer) == .ok
    csched_scheduler_destroy(own)  // waits for the release
    return observed
}

private func overwriteStack() {
    withUnsafeTemporaryAllocation(byteCount: 64 * 1024, alignment: 1) { bytes in
        memset(bytes.baseAddress!, 0x41, bytes.count)
    }
}
