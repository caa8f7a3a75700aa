// Helpers shared by the tests of this module.

import CompositeOperations
import CompositeOperationsTestSupport
import Foundation
import PropertyTesting
import PropertyTestingSupport
import Synchronization
import Testing

func scaled(_ count: Int) -> Int { max(1, Int(Double(count) * stressScale)) }

/// A log of events, in words.
typealias Log = CompositeOperationsTestSupport.Log<String>

struct TestError: Error {}

extension OperationQueue {
    func add(_ operations: [Foundation.Operation]) { addOperations(operations, waitUntilFinished: false) }
}

extension Foundation.Operation {
    /// Waits until the operation is finished, without blocking a thread. Polls instead of adding a dependent: Foundation
    /// may lose a dependent that is added while the operation finishes.
    func ended() async { _ = await eventually { isFinished } }
}

/// An operation that a test finishes from outside, as the network finishes a network operation.
final class ManualOperation: Foundation.Operation, @unchecked Sendable {
    // Unchecked: the state that this class adds is behind a lock.
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
