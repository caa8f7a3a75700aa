// Subscription.swift - an observation that can be cancelled.

internal import CompositeOperationsBasics

/// An observation, which ends when it is cancelled or released.
public final class Subscription: Sendable {
    private let end: Guarded<(@Sendable () -> Void)?>
    private let instance = Instance(.subscriptions)

    /// Creates an observation that calls `end` once when it ends.
    package init(_ end: (@Sendable () -> Void)? = nil) { self.end = Guarded(end) }

    /// Ends the observation. A call that has begun continues.
    public func cancel() {
        let end = self.end.withLock { end in
            defer { end = nil }
            return end
        }
        end?()
    }

    deinit { cancel() }
}
