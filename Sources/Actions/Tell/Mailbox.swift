// Mailbox.swift - one line of notifications for each place where they are delivered.

@_spi(Faces) import CompositeOperationsBasics
@_spi(Faces) internal import Runs
import Scheduling

/// What is delivered. Of up to three words it takes no memory of its own.
protocol MailboxItem: Sendable {
    func deliver()
}

/// Notifications that wait for their delivery, first in, first out.
final class Mailbox: Sendable {
    private struct Notification: MailboxItem {
        let body: @Sendable () -> Void
        func deliver() { body() }
    }

    let delivery: Delivery
    private let items = Guarded(Notices<any MailboxItem>())
    /// How often a precondition has changed.
    private let flips: Flips?
    private let instance = Instance(.mailboxes)

    init(_ delivery: Delivery, flips: Flips? = nil) {
        self.delivery = delivery
        self.flips = flips
    }

    /// Appends; delivers nothing. May be called under a lock.
    func append(_ item: some MailboxItem) { items.withLock { $0.append(item) } }

    /// Appends; delivers nothing. May be called under a lock.
    func append(_ body: @escaping @Sendable () -> Void) { append(Notification(body: body)) }

    /// Delivers what is there: at once, where the calling code is in the right place and nobody is about to deliver, else
    /// soon. Under no lock.
    func deliver() {
        guard items.withLock({ $0.claim() }) else { return }
        let flipsBefore = flips?.count ?? 0
        if delivery.isHere { drain(flipsBefore) } else { delivery.perform { self.drain(flipsBefore) } }
    }

    /// Makes the calling thread the one that delivers, when nothing is there and nobody does. It has to call ``giveBack()``.
    func claimEmpty() -> Bool { items.withLock { $0.claimEmpty() } }

    /// Delivers what came meanwhile, and stops.
    func giveBack() { if !items.withLock({ $0.isOver() }) { drain(flips?.count ?? 0) } }

    private func drain(_ flipsBefore: Int) {
        while let item = items.withLock({ $0.next() }) {
            item.deliver()
            guard let flips, flips.areMany(since: flipsBefore) else { continue }
            // They cause each other, perhaps for ever: others may have this thread after each round.
            flips.report()
            return goOnLater(flipsBefore)
        }
    }

    private func goOnLater(_ flipsBefore: Int) {
        guard case .inline = delivery else { return delivery.perform { self.drain(flipsBefore) } }
        // A scheduler that refuses runs nothing any more: nor does this.
        try? Scheduler.shared.submit { self.drain(flipsBefore) }
    }
}
