// Subscription.swift - somebody is told until that is cancelled.

internal import CompositeOperationsBasics

/// Somebody who will be told; no longer once it is cancelled, or nobody refers to it.
public final class Subscription: Sendable {
    private let end: Guarded<(@Sendable () -> Void)?>
    private let instance = Instance(.subscriptions)

    /// Something that ends with a call of `end`.
    package init(_ end: (@Sendable () -> Void)? = nil) { self.end = Guarded(end) }

    /// Ends it. A call that has begun goes on.
    public func cancel() {
        let end = self.end.withLock { end in
            defer { end = nil }
            return end
        }
        end?()
    }

    deinit { cancel() }
}
