// DispatchTarget.swift - a dispatch queue as a target, which knows whether it is current.

internal import CompositeOperationsBasics
public import Dispatch

extension DispatchQueue: ExecutionTarget {
    /// Enqueues a piece of work; if it is refused, the work is released.
    public func submit(_ work: ExecutionWork) { async { work.run() } }

    /// Whether the caller runs in a block of this queue; false for a global queue.
    public var isCurrent: Bool {
        if label.hasPrefix("com.apple.root.") { return false }
        return Self.getSpecific(key: mark.key) != nil
    }

    /// A key for each queue: with one key for all queues, only the innermost queue could be found, and
    /// not the queues that it targets.
    private final class Mark: Sendable {
        let key = DispatchSpecificKey<Void>()
    }

    private static let markOfQueue = DispatchSpecificKey<Mark>()
    private static let marking = Guarded(0)

    private var mark: Mark {
        Self.marking.withLock { _ in
            if let mark = getSpecific(key: Self.markOfQueue) { return mark }
            let mark = Mark()
            setSpecific(key: Self.markOfQueue, value: mark)
            // Found at once, even by a block that has already begun.
            setSpecific(key: mark.key, value: ())
            return mark
        }
    }
}

extension DispatchQueue {
    /// Calls `body` on the queue, where blocking is allowed.
    package func perform<Value: Sendable>(
        _ body: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        let result = Guarded<Result<Value, any Error>?>(nil)
        await Waiter.wait { waiter in
            async {
                let value = Result { try body() }
                result.withLock { $0 = value }
                waiter.wake()
            }
            return .waits
        }
        guard let value = result.take() else { fatalError("DispatchQueue.perform: woken without a result") }
        return try value.get()
    }
}
