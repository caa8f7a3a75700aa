// WaitList.swift - those who wait for one thing: tasks, cancellable tasks, and code that is called. The only place of this
// package, above the scheduler, that suspends a task.
//
// The list is a value under a lock of whoever owns what is waited for.
//
// Invariants:
//   I1  a waiter is in a list from the section that registers it to the one section that takes it out; whoever took it out
//       wakes it, under no lock. So each is woken once: by what it waits for, or by its cancellation.
//   I2  the section that registers a waiter looks whether there is anything to wait for still: so no wake-up is missed.
//   I3  a cancellable waiter looks at the flag of its task in that section, too; the handler of a cancellation comes after the
//       flag is set, and takes the waiter out in a section of its own. Whichever section is the later one sees the other:
//       the registration sees the flag, or the handler finds the waiter.

/// Why a waiter goes on.
package enum Wakening: Sendable {
    /// The awaited thing is there, or need not be waited for.
    case arrived
    /// The task that waits was cancelled first.
    case cancelled
}

/// Somebody who waits, once.
package final class Waiter: @unchecked Sendable {
    // Unchecked: links and mark are used under the lock of the list's owner; `means` is written before the section that
    // registers the waiter, and used by the one thread that wakes it.

    private enum Means {
        case task(CheckedContinuation<Wakening, Never>)
        case call(@Sendable (Wakening) -> Void)
    }

    private var means: Means?
    fileprivate let isCancellable: Bool
    /// For which of several things it waits, where they have an order.
    package fileprivate(set) var mark: Int64 = 0
    fileprivate var isListed = false
    fileprivate var next: Waiter?
    fileprivate unowned(unsafe) var previous: Waiter?

    private init(isCancellable: Bool) { self.isCancellable = isCancellable }

    /// Code that is short, and is called under no lock, on the thread that wakes it.
    package init(_ call: @escaping @Sendable (Wakening) -> Void) {
        isCancellable = false
        means = .call(call)
    }

    /// Lets it go on. Once, by whoever took it out of its list, and under no lock.
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
    /// - Parameter register: in one section, appends it to a list, unless there is nothing to wait for. Called before the
    ///   caller leaves its actor: so those who wait are in the order of their calls, as far as they were on it until now.
    package static func wait(
        isolation: isolated (any Actor)? = #isolation, register: (Waiter) -> Registration
    ) async {
        let waiter = Waiter(isCancellable: false)
        _ = await waiter.suspend(isolation: isolation, register)
    }

    /// Suspends the calling task until it is woken, or the task is cancelled.
    ///
    /// - Parameters:
    ///   - register: as above.
    ///   - remove: in one section, removes it from the list; whether it was there. From any thread.
    package static func wait(
        isolation: isolated (any Actor)? = #isolation,
        register: (Waiter) -> Registration,
        orCancelledBy remove: @escaping @Sendable (Waiter) -> Bool
    ) async -> Wakening {
        let waiter = Waiter(isCancellable: true)
        return await withTaskCancellationHandler {
            // With its parameter the closure stays on the caller's actor; otherwise it leaves it, and comes back in any order.
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

    /// The answer to a registration.
    package enum Registration: Sendable {
        /// The waiter is in the list.
        case waits
        /// There is nothing to wait for any more.
        case isOver
        /// Its task is cancelled.
        case isCancelled
    }
}

/// The waiters, in the order of their coming. To come and to leave is O(1). A value with references in it: the owner has
/// one, and copies it never.
package struct WaitList {
    private var first: Waiter?
    private unowned(unsafe) var last: Waiter?

    package init() {}

    package var isEmpty: Bool { first == nil }

    /// Registers a waiter, on the thread of its task.
    ///
    /// - Parameter mark: not less than those of the waiters before.
    package mutating func append(_ waiter: Waiter, mark: Int64 = 0) -> Waiter.Registration {
        if waiter.isCancellable, Task.isCancelled { return .isCancelled }  // I3
        waiter.mark = mark
        waiter.isListed = true
        waiter.previous = last
        if let last { last.next = waiter } else { first = waiter }
        last = waiter
        return .waits
    }

    /// - Returns: whether it was here: if so, the caller has to wake it.
    package mutating func remove(_ waiter: Waiter) -> Bool {
        guard waiter.isListed else { return false }
        waiter.isListed = false
        if let next = waiter.next { next.previous = waiter.previous } else { last = waiter.previous }
        if let previous = waiter.previous { previous.next = waiter.next } else { first = waiter.next }
        waiter.next = nil
        return true
    }

    /// Takes out the one that came first, which the caller has to wake.
    package mutating func popFirst() -> Waiter? {
        guard let waiter = first else { return nil }
        _ = remove(waiter)
        return waiter
    }

    /// Takes all out, for the caller to wake.
    ///
    /// - Parameter count: called for each.
    package mutating func takeAll(_ count: () -> Void = {}) -> Woken {
        take { _ in
            count()
            return true
        }
    }

    /// Takes out those at the front for which `isDue` holds, for the caller to wake.
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

    /// Waiters that were taken out.
    package struct Woken {
        fileprivate let first: Waiter?

        /// Lets them go on, in the order of their coming. Under no lock.
        package consuming func wake() {
            var rest = first
            while let waiter = rest {
                rest = waiter.next
                waiter.next = nil  // or one would be released inside of another
                waiter.wake()
            }
        }
    }
}
