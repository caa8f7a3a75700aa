// Mailbox.swift - one line of notifications for each place where they are delivered.
//
// Invariants:
//   I1  what is appended is delivered once, in the order in which it was appended.
//   I2  one thread at a time delivers: the one that made `isDraining` true. It makes it false in the section in which it
//       sees that nothing is left, so whoever appends after that begins anew: nothing stays.
//   I3  no lock is held while something is delivered, or released.

import CompositeOperationsBasics
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

    private struct Nothing: MailboxItem {
        func deliver() {}
    }

    private struct State {
        var items: [any MailboxItem] = []
        var taken = 0
        var isDraining = false

        /// - Returns: nil, and it is drained, when nothing is left.
        mutating func next() -> (any MailboxItem)? {
            if taken == items.count {
                let isLarge = items.capacity > 64
                items.removeAll(keepingCapacity: !isLarge)
                taken = 0
                isDraining = false
                return nil
            }
            defer { taken += 1 }
            let item = items[taken]
            items[taken] = Nothing()
            if taken >= 1_000 && taken * 2 > items.count {
                items.removeFirst(taken)
                taken = 0
            }
            return item
        }
    }

    let delivery: Delivery
    private let state = Guarded(State())
    /// How often a precondition has changed.
    private let flips: Flips?
    private let instance = Instance(.mailboxes)

    init(_ delivery: Delivery, flips: Flips? = nil) {
        self.delivery = delivery
        self.flips = flips
    }

    /// Appends; delivers nothing. May be called under a lock.
    func append(_ item: some MailboxItem) { state.withLock { $0.items.append(item) } }

    /// Appends; delivers nothing. May be called under a lock.
    func append(_ body: @escaping @Sendable () -> Void) { append(Notification(body: body)) }

    /// Delivers what is there: at once, where the calling code is in the right place and nobody is about to deliver, else
    /// soon. Under no lock.
    func deliver() {
        let isMine = state.withLock { state in
            guard !state.isDraining, state.taken < state.items.count else { return false }
            state.isDraining = true
            return true
        }
        guard isMine else { return }
        let flipsBefore = flips?.count ?? 0
        if delivery.isHere { drain(flipsBefore) } else { delivery.perform { self.drain(flipsBefore) } }
    }

    private func drain(_ flipsBefore: Int) {
        while let item = state.withLock({ $0.next() }) {
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
