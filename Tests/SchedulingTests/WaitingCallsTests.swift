import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

/// Every call of this module that blocks until something has run on a scheduler. The calls of operations and commands
/// have similar tests in their own modules.
private enum WaitingCall: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case wait, waitWithLimit, waitHelpingNobody
    case forEachIndex, forEachIndexInContext, forEachElement, forEachChunk, map, reduce, reduceInto
    case join, drain

    var testDescription: String { rawValue }

    /// Blocks until `body` has run, once or more often.
    @available(*, noasync)
    @_optimize(none)  // the optimizer of Swift 6.3.1 crashes in it (CopyPropagation)
    func call(on scheduler: Scheduler, _ body: @escaping @Sendable () -> Void) throws {
        switch self {
        case .wait: try counted(by: scheduler, body).wait()
        case .waitWithLimit:
            #expect(try counted(by: scheduler, body).wait(timeout: .seconds(20)) == .completed)
        case .waitHelpingNobody: try counted(by: scheduler, body).wait(helping: .nobody)
        case .forEachIndex: try scheduler.forEach(0..<3) { _ in body() }
        case .forEachIndexInContext: try scheduler.forEach(0..<3, context: .inherited) { _ in body() }
        case .forEachElement: try scheduler.forEach(["a", "b"]) { _ in body() }
        case .forEachChunk: try scheduler.forEach([1, 2, 3], chunksOf: 2) { _ in body() }
        case .map: _ = try scheduler.map([1, 2]) { _ in body() }
        case .reduce:
            _ = try scheduler.reduce([1, 2], 0) {
                body()
                return $0 + $1
            }
        case .reduceInto:
            _ = try scheduler.reduce([1, 2], into: 0) { _, _ in
                body()
            } combine: {
                $0 += $1
            }
        case .join: _ = Scheduler.join(body, body)
        case .drain:
            let lane = try SerialLane(on: scheduler)
            try lane.submit(body)
            try lane.drain()
        }
    }

    private func counted(by scheduler: Scheduler, _ body: @escaping @Sendable () -> Void) throws
        -> CompletionCounter
    {
        let counter = try CompletionCounter()
        try scheduler.submit(in: counter, body)
        return counter
    }

    /// Whether bodies may see the caller's task-local values: because the caller asked for that, or because the
    /// caller's thread runs them as a part of the call (a branch of a join, the last combination).
    var mayShowContext: Bool { [.forEachIndexInContext, .join, .reduce].contains(self) }
}

extension Stress {
    @Suite(.inTurn) struct WaitingCalls {
        @Test(arguments: WaitingCall.allCases, [1, 2, 4])
        fileprivate func `no operation runs below a wait if it wants a lock held there`(
            call: WaitingCall, workers: Int
        ) throws {
            try withScheduler(.init(workers: workers)) { scheduler in
                let lock = Locked(0)
                let all = try CompletionCounter()
                for _ in 0..<12 {
                    try scheduler.submit(in: all) {
                        lock.withLock { entries in
                            do { try call.call(on: scheduler) { usleep(100) } } catch { Issue.record(error) }
                            entries += 1
                        }
                    }
                }
                #expect(all.wait(timeout: .seconds(20)) == .completed)
                #expect(lock.withLock { $0 } == 12)
            }
        }

        @Test(arguments: WaitingCall.allCases, [1, 2, 4])
        fileprivate func `no operation below a wait sees its task locals`(
            call: WaitingCall, workers: Int
        ) throws {
            try withScheduler(.init(workers: workers)) { scheduler in
                let mistaken = Count()
                let all = try CompletionCounter()
                for id in 1...12 {
                    try scheduler.submit(in: all) {
                        Trace.$id.withValue(id) {
                            do {
                                try call.call(on: scheduler) {
                                    let own = call.mayShowContext ? id : 0
                                    if Trace.id != 0, Trace.id != own { mistaken.add() }
                                }
                            } catch { Issue.record(error) }
                            if Trace.id != id { mistaken.add() }
                        }
                    }
                    try scheduler.submit(in: all) { if Trace.id != 0 { mistaken.add() } }
                }
                #expect(all.wait(timeout: .seconds(20)) == .completed)
                #expect(mistaken.value == 0)
            }
        }

        /// One operation waits for another thread, and as many operations as there are workers wait for that operation.
        @Test(arguments: WaitingCall.allCases, [1, 2, 4])
        fileprivate func `acyclic waits end`(call: WaitingCall, workers: Int) throws {
            try withScheduler(.init(workers: workers)) { scheduler in
                let (outside, first, all) = (
                    try CompletionCounter(), try CompletionCounter(), try CompletionCounter()
                )
                outside.enter()
                try scheduler.submit(in: first) {
                    do { try call.call(on: scheduler) { outside.wait() } } catch { Issue.record(error) }
                }
                for _ in 0..<workers {
                    try scheduler.submit(in: all) {
                        do { try call.call(on: scheduler) { first.wait() } } catch { Issue.record(error) }
                    }
                }
                outside.leave()
                #expect(all.wait(timeout: .seconds(20)) == .completed)
            }
        }
    }
}

private enum Trace { @TaskLocal static var id = 0 }
