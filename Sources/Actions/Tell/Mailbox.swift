// Mailbox.swift - one line of notifications for each place where they are delivered.

@_spi(Faces) import CompositeOperationsBasics
@_spi(Faces) internal import Runs
import Scheduling

/// An item to be delivered. One of up to three words takes no memory of its own.
protocol MailboxItem: Sendable {
    /// - Returns: those who wait for this, to be woken by whoever has delivered it.
    func deliver() -> WaitList.Woken?
}

/// Notifications that wait for their delivery, first in, first out.
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
        /// That of whoever delivers. Left as it is when nobody does.
        var thread: UInt = 0

        mutating func claim() -> Bool {
            guard items.claim() else { return false }
            thread = 0  // until it begins
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

    /// The thread that delivers the line.
    enum Deliverer {
        /// The caller, from now on: it calls ``Mailbox/deliver(_:)``, and, if that says so, ``Mailbox/giveBack()``.
        ///
        /// - Parameter items: how many there are.
        case caller(items: Int)
        /// The caller, further up on its stack.
        case callerAlready
        /// Another thread, or, soon, one that is not known.
        case another
    }

    let delivery: Delivery
    private let line = Guarded(Line())
    /// How often a precondition has changed.
    private let flips: Flips?
    private let instance = Instance(.mailboxes)

    init(_ delivery: Delivery, flips: Flips? = nil) {
        self.delivery = delivery
        self.flips = flips
    }

    /// Appends; delivers nothing. May be called under a lock.
    func append(_ item: some MailboxItem) { line.withLock { $0.items.append(item) } }

    /// Appends; delivers nothing. May be called under a lock.
    func append(_ body: @escaping @Sendable () -> Void) { append(Notification(body: body)) }

    /// Delivers what is there: at once, where the calling code is in the right place and nobody is about to deliver, else
    /// soon. Under no lock.
    func deliver() {
        guard line.withLock({ $0.claim() }) else { return }
        let flipsBefore = flips?.count ?? 0
        if delivery.isHere { drain(flipsBefore) } else { delivery.perform { self.drain(flipsBefore) } }
    }

    /// Makes the calling thread the one that delivers, when nothing is there and nobody does. It has to call ``giveBack()``.
    func claimEmpty() -> Bool { line.withLock { $0.claimEmpty() } }

    /// Makes the calling thread the one that delivers, unless somebody does. May be called under a lock.
    func claim() -> Deliverer { line.withLock { $0.claimHere() } }

    /// Delivers what came meanwhile, and stops.
    func giveBack() { if !line.withLock({ $0.items.isOver() }) { drain(flips?.count ?? 0) } }

    /// Delivers the first ones, for whoever has claimed it.
    ///
    /// - Returns: whether the caller delivers still; false: the rest comes later, elsewhere.
    func deliver(_ count: Int) -> Bool { drain(flips?.count ?? 0, most: count) }

    /// - Parameter most: when these are delivered, it stops, and holds the mailbox still.
    /// - Returns: whether it does.
    @discardableResult private func drain(_ flipsBefore: Int, most: Int = .max) -> Bool {
        // Woken when this has let go of the mailbox, or goes on with the next item: so whoever goes on alone finds nobody
        // that delivers.
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
            // They cause each other, perhaps for ever: others may have this thread after each round.
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
        // A scheduler that refuses runs nothing any more: nor does this.
        try? Scheduler.shared.submit { self.drain(flipsBefore) }
    }
}
