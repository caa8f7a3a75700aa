// COOperationQueue+Ticket.swift - what a queue knows of one operation, and the list of all that are in it.
//
// Ownership: an operation that has a queue holds its ticket, a leaf as its place, a composite beside it. A ticket that
// is in the list holds its operation. So whatever is in the list stays, and the list itself counts no references. A stale
// entry of a line keeps a ticket alive, and nothing else: with its operation go the target and the queue in it.

internal import CompositeOperationsBasics
internal import Scheduling

extension COOperationQueue {
    /// An operation, as its queue knows it. Under the queue's lock, except for what it has as a place.
    final class Ticket: Place, @unchecked Sendable {
        // Unchecked: as its superclass.

        enum State {
            case outside
            /// In a line.
            case inLine
            /// Waits, but not for a slot.
            case asleep
            /// Holds a slot.
            case running
            /// Needs none now: a composite after its registration, a suspended operation, one that pauses.
            case aside
        }

        /// The operation, except outside.
        @exclusivity(unchecked) var operation: AnyOperation?
        /// Its place among those that wait; 0: none yet.
        @exclusivity(unchecked) var number: UInt64 = 0
        /// The address of its queue.
        @exclusivity(unchecked) private var queue: UnsafeRawPointer?
        // The list of all that are not outside.
        @exclusivity(unchecked) fileprivate(set) var next: Unmanaged<Ticket>?
        @exclusivity(unchecked) fileprivate var previous: Unmanaged<Ticket>?
        /// How many of its blocks had begun when it was given the number.
        @exclusivity(unchecked) var runs: Int32 = 0
        @exclusivity(unchecked) fileprivate(set) var state = State.outside
        /// That of its operation, when the queue looked at it last.
        @exclusivity(unchecked) var priority = Scheduler.Priority.default
        /// The line of that priority has an entry of it with that number.
        @exclusivity(unchecked) var isListed = false
        /// A child: goes first, and is not counted as pending. As when it was looked at first: what has a number becomes
        /// nobody's child any more.
        @exclusivity(unchecked) var isChild = false
        private let instance = Instance(.tickets)

        /// Before its operation is started.
        func isIn(_ queue: COOperationQueue) { self.queue = Self.address(of: queue) }

        /// Whether it is a queue's: or was that of one that is gone, and whose address this one has; then it is outside.
        func isOf(_ queue: COOperationQueue) -> Bool { self.queue == Self.address(of: queue) }

        private static func address(of queue: COOperationQueue) -> UnsafeRawPointer {
            UnsafeRawPointer(Unmanaged.passUnretained(queue).toOpaque())
        }

        @inline(__always)
        var waits: Bool { state == .inLine || state == .asleep }
        /// Whether it waits, and is counted.
        @inline(__always)
        var isPending: Bool { waits && !isChild }
    }

    /// The tickets of all that are in a queue, those that came first at the front, and how many there are of which kind.
    struct Tickets {
        private var lastNumber: UInt64 = 0
        private(set) var running = 0
        private(set) var pending = 0
        private(set) var count = 0
        private(set) var first: Unmanaged<Ticket>?
        private var last: Unmanaged<Ticket>?
        /// The first one that may be pending; nil: none is.
        private var firstPending: Unmanaged<Ticket>?

        private mutating func link(_ ticket: Ticket) {
            count += 1
            ticket.previous = last
            if let last { last._withUnsafeGuaranteedRef { $0.next = .passUnretained(ticket) } }
            last = .passUnretained(ticket)
            if first == nil { first = last }
        }

        private mutating func unlink(_ ticket: Ticket) {
            count -= 1
            let (previous, next) = (ticket.previous, ticket.next)
            if let firstPending, firstPending.isOf(ticket) { self.firstPending = next }
            if let previous { previous._withUnsafeGuaranteedRef { $0.next = next } } else { first = next }
            if let next { next._withUnsafeGuaranteedRef { $0.previous = previous } } else { last = previous }
            ticket.next = nil
            ticket.previous = nil
        }

        /// Puts a ticket elsewhere, and keeps the counts.
        mutating func move(_ ticket: Ticket, to state: Ticket.State) {
            let former = ticket.state
            if former == state { return }
            if former == .running { running -= 1 }
            if ticket.isPending { pending -= 1 }
            if former == .outside { link(ticket) }
            if state == .outside {
                unlink(ticket)
                ticket.operation = nil  // whoever came with it holds it
            }
            ticket.state = state
            if state == .running { running += 1 }
            if ticket.isPending {
                pending += 1
                keepFirst(ticket)
            }
        }

        /// Keeps I5 of the queue: a ticket has become pending.
        @inline(__always)
        private mutating func keepFirst(_ ticket: Ticket) {
            // The places of pending ones, which are no children, are those of their numbers.
            skipOthers()
            let isBefore = firstPending?._withUnsafeGuaranteedRef { ticket.number < $0.number } ?? true
            if isBefore { firstPending = .passUnretained(ticket) }
        }

        /// - Complexity: O(1) amortised: those that are passed over are looked at again only when one before them waits anew.
        @inline(__always)
        private mutating func skipOthers() {
            while let ticket = firstPending, !ticket._withUnsafeGuaranteedRef({ $0.isPending }) {
                firstPending = ticket._withUnsafeGuaranteedRef { $0.next }
            }
        }

        /// The pending one that has the place at the front.
        ///
        /// - Complexity: O(1) amortised.
        mutating func oldestPending() -> Ticket? {
            skipOthers()
            return firstPending?.takeUnretainedValue()
        }

        /// The last one of all, from now on. It is not pending: another attempt begins with a slot.
        mutating func number(_ ticket: Ticket, runs: Int32) {
            lastNumber += 1
            ticket.number = lastNumber
            ticket.isListed = false
            ticket.runs = runs
            guard ticket.state != .outside else { return }  // it will be
            unlink(ticket)
            link(ticket)
        }

        private func forEach(_ body: (Ticket) -> Void) {
            var next = first
            while let ticket = next {
                next = ticket._withUnsafeGuaranteedRef { $0.next }
                ticket._withUnsafeGuaranteedRef(body)
            }
        }

        func tickets(where isWanted: (Ticket) -> Bool) -> [Ticket] {
            var found: [Ticket] = []
            forEach { ticket in if isWanted(ticket) { found.append(ticket) } }
            return found
        }

        func operations(where isWanted: (Ticket) -> Bool) -> [AnyOperation] {
            var found: [AnyOperation] = []
            forEach { ticket in
                if isWanted(ticket), let operation = ticket.operation { found.append(operation) }
            }
            return found
        }
    }
}

extension Unmanaged<COOperationQueue.Ticket> {
    @inline(__always)
    fileprivate func isOf(_ ticket: COOperationQueue.Ticket) -> Bool {
        toOpaque() == Unmanaged.passUnretained(ticket).toOpaque()
    }
}
