// Mailbox.swift - a queue of notifications for one delivery place.

@_spi(Faces) import CompositeOperationsBasics
@_spi(Faces) internal import Runs
import Scheduling

/// An item to be delivered. An item of up to three words needs no separate allocation.
protocol MailboxItem: Sendable {
    /// - Returns: the waiters for this item, to be woken by the delivering thread.
    func deliver() -> WaitList.Woken?
}

/// Notifications waiting for delivery, first in, first out.
final class Mailbox: Sendable {
    private struct Notification: MailboxItem {
        let body: @Sendable () -> Void
        func deliver() -> WaitList.Woken? {
            body()
            return nil
        }
    }

    private struct Line {
        var items = Notices<any MailboxItem>()
        /// The delivering thread. Stale if no thread is delivering.
        var thread: UInt = 0

        mutating func claim() -> Bool {
            guard items.claim() else { return false }
            thread = 0  // unknown until delivery begins
            return true
        }

        mutating func claimEmpty() -> Bool {
            guard items.claimEmpty() else { return false }
            thread = ThreadValue.thread
            return true
        }

        mutating func claimHere() -> Deliverer {
            if items.claimAny() {
                thread = ThreadValue.thread
                return .caller(items: items.count)
            }
            return thread == ThreadValue.thread ? .callerAlready : .another
        }

        mutating func next() -> (any MailboxItem)? {
            thread = ThreadValue.thread
            return items.next()
        }
    }

    /// Which thread delivers the line.
    enum Deliverer {
        /// The caller, from now on: it must call ``Mailbox/deliver(_:)``, and, if that returns true, ``Mailbox/giveBack()``.
        ///
        /// - Parameter items: the number of items.
        case caller(items: Int)
        /// The caller, further up on its stack.
        case callerAlready
        /// Another thread, possibly one that is not yet known.
        case another
    }

    let delivery: Delivery
    private let line = Guarded(Line())
    /// Counts the changes of the action's precondition; nil if the mailbox is not an action's.
    private let flips: Flips?
    private let instance = Instance(.mailboxes)

    init(_ delivery: Delivery, flips: Flips? = nil) {
        self.delivery = delivery
        self.flips = flips
    }

    /// Appends without delivering. May be called under a lock.
    func append(_ item: some MailboxItem) { line.withLock { $0.items.append(item) } }

    /// Appends without delivering. May be called under a lock.
    func append(_ body: @escaping @Sendable () -> Void) { append(Notification(body: body)) }

    /// Delivers the items: at once if the caller is at the right place and no thread is about to deliver, otherwise soon.
    /// Call under no lock.
    func deliver() {
        guard line.withLock({ $0.claim() }) else { return }
        let flipsBefore = flips?.count ?? 0
        if delivery.isHere { drain(flipsBefore) } else { delivery.perform { self.drain(flipsBefore) } }
    }

    /// Makes the calling thread the delivering one if the mailbox is empty and no thread is delivering. It must then call
    /// ``giveBack()``.
    func claimEmpty() -> Bool { line.withLock { $0.claimEmpty() } }

    /// Makes the calling thread the delivering one unless there is one. May be called under a lock.
    func claim() -> Deliverer { line.withLock { $0.claimHere() } }

    /// Delivers the items that arrived in the meantime, and releases the mailbox.
    func giveBack() { if !line.withLock({ $0.items.isOver() }) { drain(flips?.count ?? 0) } }

    /// Delivers the first `count` items. Called by the thread that has claimed the mailbox.
    ///
    /// - Returns: whether the caller still holds the mailbox; if false, the rest is delivered later, elsewhere.
    func deliver(_ count: Int) -> Bool { drain(flips?.count ?? 0, most: count) }

    /// - Parameter most: the number of items after which this returns, still holding the mailbox.
    /// - Returns: whether the caller still holds the mailbox.
    @discardableResult private func drain(_ flipsBefore: Int, most: Int = .max) -> Bool {
        // Woken once this thread has released the mailbox, or continues with the next item. So a woken caller that no other
        // thread competes with finds no delivering thread.
        var woken: WaitList.Woken?
        var left = most
        var holds = true
        while left > 0 {
            guard let item = line.withLock({ $0.next() }) else {
                holds = false
                break
            }
            left -= 1
            woken?.wake()
            woken = item.deliver()
            guard let flips, flips.areMany(since: flipsBefore) else { continue }
            // The changes cause each other, perhaps forever: yield the thread after each round.
            flips.report()
            goOnLater(flipsBefore)
            holds = false
            break
        }
        woken?.wake()
        return holds
    }

    private func goOnLater(_ flipsBefore: Int) {
        line.withLock { $0.thread = 0 }
        guard case .inline = delivery else { return delivery.perform { self.drain(flipsBefore) } }
        // A scheduler that refuses work no longer runs anything, so the rest is dropped.
        try? Scheduler.shared.submit { self.drain(flipsBefore) }
    }
}
