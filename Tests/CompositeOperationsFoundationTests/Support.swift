// What the tests of this module share.

import CompositeOperations
import Foundation
import PropertyTesting
import PropertyTestingSupport
import Synchronization
import Testing

let isThreadSanitized = dlsym(nil, "__tsan_init") != nil
let isAddressSanitized = dlsym(nil, "__asan_init") != nil

/// Sizes grow and shrink with `STRESS_SCALE` of the environment.
let stressScale = ProcessInfo.processInfo.environment["STRESS_SCALE"].flatMap { Double($0) } ?? 1

func scaled(_ count: Int) -> Int { max(1, Int(Double(count) * stressScale)) }

/// How long a case of a test may take: many times of what it takes on a busy machine.
let testLimit: Duration =
    .seconds(240) * max(1, stressScale) * (isThreadSanitized || isAddressSanitized ? 2 : 1)

/// What happened, in order.
final class Log: Sendable {
    private let storage = Locked<[String]>([])
    var entries: [String] { storage.withLock { $0 } }
    func add(_ entry: String) { storage.withLock { $0.append(entry) } }
}

/// A count with an identity.
final class Count: Sendable {
    private let storage = Atomic(0)
    var value: Int { storage.load(ordering: .sequentiallyConsistent) }
    @discardableResult
    func add(_ amount: Int = 1) -> Int { storage.add(amount, ordering: .sequentiallyConsistent).newValue }
}

/// Counts when it goes: captured by a closure, it tells that the closure was released.
final class Token: Sendable {
    private let released: Count
    init(_ released: Count) { self.released = released }
    deinit { released.add() }
}

struct TestError: Error {}

/// Waits until a condition holds that no event tells of.
func eventually(within limit: Duration = testLimit * 0.75, _ condition: () -> Bool) async -> Bool {
    let end = ContinuousClock.now + limit
    while !condition() {
        if ContinuousClock.now > end { return false }
        await Task.yield()
    }
    return true
}

extension Outcome {
    var isFinished: Bool { if case .finished = self { true } else { false } }
    var isCancelled: Bool { if case .cancelled = self { true } else { false } }
}

extension OperationQueue {
    func add(_ operations: [Foundation.Operation]) { addOperations(operations, waitUntilFinished: false) }
}

extension Foundation.Operation {
    /// Waits until it is finished, without blocking a thread; by a dependent, as queues do it.
    func ended() async {
        await withCheckedContinuation { continuation in
            let last = BlockOperation { continuation.resume() }
            last.addDependency(self)
            OperationQueue().addOperation(last)
        }
    }
}

/// An operation that is finished when a test says so, as those of networks are.
final class ManualOperation: Foundation.Operation, @unchecked Sendable {
    // Unchecked: what is not in Foundation's class is locked.
    private let state = Locked((isExecuting: false, isFinished: false))
    let starts = Count()
    let cancellations = Count()

    override var isAsynchronous: Bool { true }
    override var isExecuting: Bool { state.withLock { $0.isExecuting } }
    override var isFinished: Bool { state.withLock { $0.isFinished } }

    override func start() {
        starts.add()
        if isCancelled { return finish() }
        state.withLock { $0.isExecuting = true }
        didChangeValue(forKey: "isExecuting")
    }

    override func cancel() {
        cancellations.add()
        super.cancel()
    }

    func finish() {
        state.withLock { $0 = (false, true) }
        didChangeValue(forKey: "isExecuting")
        didChangeValue(forKey: "isFinished")
    }
}
