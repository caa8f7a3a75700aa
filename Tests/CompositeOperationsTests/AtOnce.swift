// Helpers shared by the regression tests: threads that race, threads that may block, ways to end.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import Glibc
import PropertyTesting

/// Runs `body` on `count` threads that start together, without blocking a thread of Swift's pool.
func atOnce<Answer: Sendable>(_ count: Int, _ body: @escaping @Sendable (Int) -> Answer) async -> [Answer] {
    await withCheckedContinuation { continuation in
        DispatchQueue.global().async { continuation.resume(returning: concurrently(count, body)) }
    }
}

/// Runs `body` on a separate thread, which it may block.
func aside<Answer: Sendable>(_ body: @escaping @Sendable () -> Answer) async -> Answer {
    await atOnce(1) { _ in body() }[0]
}

/// The three ways to end an operation.
enum Ending: CaseIterable, Sendable {
    case finish, fail, cancel

    @discardableResult
    func end(_ attempt: COOperation<Int>.Attempt) -> Bool {
        switch self {
        case .finish: attempt.finish(7)
        case .fail: attempt.fail(TestError(number: 7))
        case .cancel: attempt.cancel()
        }
    }

    @discardableResult
    func end(_ operation: COOperation<Int>) -> Bool {
        switch self {
        case .finish: operation.finish(7)
        case .fail: operation.fail(TestError(number: 7))
        case .cancel: operation.cancel()
        }
    }

    func fits(_ outcome: Outcome<Int>?) -> Bool {
        switch (self, outcome) {
        case (.finish, .finished(7)?): true
        case (.fail, .failed(let error)?): error as? TestError == TestError(number: 7)
        case (.cancel, .cancelled(let reason)?): reason.kind == .requested
        default: false
        }
    }
}

extension AnyOperation {
    /// Whether its block has returned and the operation has not ended.
    var hasLeftOpen: Bool { tree.contains("its block has returned without an end") }

    /// Spins until the block has returned. Only for threads that may spin.
    func waitUntilLeftOpen() { while !hasLeftOpen { sched_yield() } }
}

/// Counts work, and passes it on to another target.
final class CountingTarget: ExecutionTarget {
    let submitted = Count()
    private let next: any ExecutionTarget
    init(to next: any ExecutionTarget) { self.next = next }
    func submit(_ work: ExecutionWork) {
        submitted.add()
        next.submit(work)
    }
    var isCurrent: Bool { next.isCurrent }
}

/// Releases work without running it.
final class DroppingTarget: ExecutionTarget {
    func submit(_ work: ExecutionWork) {}
    var isCurrent: Bool { false }
}

/// Runs each piece of work more than once, on several threads.
final class RepeatingTarget: ExecutionTarget {
    private let times: Int
    init(_ times: Int) { self.times = times }
    func submit(_ work: ExecutionWork) {
        elsewhere.async { [times] in for _ in 0..<times { work.run() } }
        for _ in 1..<times { elsewhere.async { work.run() } }
    }
    var isCurrent: Bool { false }
}

/// Holds work until `letGo()` is called.
final class HoldingTarget: ExecutionTarget {
    private let held = Locked<[ExecutionWork]>([])
    func submit(_ work: ExecutionWork) { held.withLock { $0.append(work) } }
    var isCurrent: Bool { false }
    var count: Int { held.withLock { $0.count } }
    /// Runs the held work, on the calling thread.
    func letGo() {
        let work = held.withLock { held in
            defer { held = [] }
            return held
        }
        for piece in work { piece.run() }
    }
}
