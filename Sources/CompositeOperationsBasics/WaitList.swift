// WaitList.swift - the waiters for one event: tasks, cancellable tasks, and callbacks. The only place in this package, above
// the scheduler, that suspends a task.
//
// The list is a value, under a lock of the owner of the awaited event.
//
// Invariants:
//   I1  a waiter is in a list from the critical section that registers it to the one section that removes it. The thread that
//       removed it wakes it, under no lock. Hence each waiter is woken once: by the event or by its cancellation.
//   I2  the section that registers a waiter checks whether there is still anything to wait for, so no wake-up is missed.
//   I3  a cancellable waiter also checks its task's cancellation flag in that section. The cancellation handler runs after the
//       flag is set, and removes the waiter in a separate section. The later of the two sections sees the other: the
//       registration sees the flag, or the handler finds the waiter.

/// Why a waiter was woken.
package enum Wakening: Sendable {
    /// The event has occurred, or need not be waited for.
    case arrived
    /// The waiting task was cancelled first.
    case cancelled
}

/// A waiter, used once.
package final class Waiter: @unchecked Sendable {
    // Unchecked: links and mark are used under the lock of the list's owner; `means` is written before the section that
    // registers the waiter, and used by the one thread that wakes it.

    private enum Means {
        case task(CheckedContinuation<Wakening, Never>)
        case call(@Sendable (Wakening) -> Void)
    }

    private var means: Means?
    fileprivate let isCancellable: Bool
    /// Which of several ordered events the waiter waits for.
    package fileprivate(set) var mark: Int64 = 0
    fileprivate var isListed = false
    fileprivate var next: Waiter?
    fileprivate unowned(unsafe) var previous: Waiter?

    private init(isCancellable: Bool) { self.isCancellable = isCancellable }

    /// A short callback, called under no lock, on the thread that wakes the waiter.
    package init(_ call: @escaping @Sendable (Wakening) -> Void) {
        isCancellable = false
        means = .call(call)
    }

    /// Wakes the waiter. Called once, by the thread that removed it from its list, under no lock.
    package func wake(_ wakening: Wakening = .arrived) {
        let means = self.means
        self.means = nil
        switch means {
        case .task(let continuation): continuation.resume(returning: wakening)
        case .call(let body): body(wakening)
        case nil: fatalError("Waiter: it is woken twice")
        }
    }

    /// Suspends the calling task until it is woken.
    ///
    /// - Parameter register: in one critical section, appends the waiter to a list, unless there is nothing to wait for.
    ///   Called before the caller leaves its actor, so waiters from one actor are in the order of their calls.
    package static func wait(
        isolation: isolated (any Actor)? = #isolation, register: (Waiter) -> Registration
    ) async {
        let waiter = Waiter(isCancellable: false)
        _ = await waiter.suspend(isolation: isolation, register)
    }

    /// Suspends the calling task until it is woken, or the task is cancelled.
    ///
    /// - Parameters:
    ///   - register: as for the `wait` that ignores cancellation.
    ///   - remove: in one critical section, removes the waiter from the list; returns whether it was there. Called on any
    ///     thread.
    package static func wait(
        isolation: isolated (any Actor)? = #isolation,
        register: (Waiter) -> Registration,
        orCancelledBy remove: @escaping @Sendable (Waiter) -> Bool
    ) async -> Wakening {
        let waiter = Waiter(isCancellable: true)
        return await withTaskCancellationHandler {
            // The `isolation` parameter keeps the closure on the caller's actor. Otherwise callers would leave the actor and
            // return in any order.
            await waiter.suspend(isolation: isolation, register)
        } onCancel: {
            if remove(waiter) { waiter.wake(.cancelled) }
        }
    }

    private func suspend(
        isolation: isolated (any Actor)?, _ register: (Waiter) -> Registration
    ) async -> Wakening {
        await withCheckedContinuation { continuation in
            means = .task(continuation)
            switch register(self) {
            case .waits: break
            case .isOver: wake(.arrived)
            case .isCancelled: wake(.cancelled)
            }
        }
    }

    /// The result of a registration.
    package enum Registration: Sendable {
        /// The waiter is in the list.
        case waits
        /// There is nothing left to wait for.
        case isOver
        /// Its task is cancelled.
        case isCancelled
    }
}

/// The waiters, in the order of registration. Registration and removal are O(1). Copies would share the waiters, so the
/// owner never copies its list.
package struct WaitList {
    private var first: Waiter?
    private unowned(unsafe) var last: Waiter?

    package init() {}

    package var isEmpty: Bool { first == nil }

    /// Registers a waiter, on the thread of its task.
    ///
    /// - Parameter mark: not less than the marks of earlier waiters.
    package mutating func append(_ waiter: Waiter, mark: Int64 = 0) -> Waiter.Registration {
        if waiter.isCancellable, Task.isCancelled { return .isCancelled }  // I3
        waiter.mark = mark
        waiter.isListed = true
        waiter.previous = last
        if let last { last.next = waiter } else { first = waiter }
        last = waiter
        return .waits
    }

    /// - Returns: whether the waiter was in this list; if so, the caller must wake it.
    package mutating func remove(_ waiter: Waiter) -> Bool {
        guard waiter.isListed else { return false }
        waiter.isListed = false
        if let next = waiter.next { next.previous = waiter.previous } else { last = waiter.previous }
        if let previous = waiter.previous { previous.next = waiter.next } else { first = waiter.next }
        waiter.next = nil
        return true
    }

    /// Removes the earliest waiter, which the caller must wake.
    package mutating func popFirst() -> Waiter? {
        guard let waiter = first else { return nil }
        _ = remove(waiter)
        return waiter
    }

    /// Removes all waiters, for the caller to wake.
    ///
    /// - Parameter count: called for each waiter.
    package mutating func takeAll(_ count: () -> Void = {}) -> Woken {
        take { _ in
            count()
            return true
        }
    }

    /// Removes the leading waiters for which `isDue` holds, for the caller to wake.
    package mutating func take(while isDue: (Waiter) -> Bool) -> Woken {
        guard let front = first else { return Woken(first: nil) }
        var lastTaken: Waiter?
        while let waiter = first, isDue(waiter) {
            waiter.isListed = false
            lastTaken = waiter
            first = waiter.next
        }
        guard let lastTaken else { return Woken(first: nil) }
        lastTaken.next = nil
        if let first { first.previous = nil } else { last = nil }
        return Woken(first: front)
    }

    /// Waiters removed from a list, to be woken.
    package struct Woken {
        fileprivate let first: Waiter?

        /// Wakes them, in the order of registration. Called under no lock.
        package consuming func wake() {
            var rest = first
            while let waiter = rest {
                rest = waiter.next
                waiter.next = nil  // otherwise their deallocations would recurse
                waiter.wake()
            }
        }
    }
}
