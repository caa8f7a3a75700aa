// COOperationQueue+Ticket.swift - a queue's record of one operation, and the list of all records.
//
// Ownership: an operation that has a queue holds its ticket, a leaf as its place, a composite in its composition. A
// ticket that is in the list holds its operation. So everything in the list stays alive, and the list itself counts no
// references. A stale entry of a line keeps a ticket alive, and nothing else: the target and the queue in the ticket
// are released with its operation.

internal import CompositeOperationsBasics
internal import Scheduling

extension COOperationQueue {
    /// A queue's record of an operation. Guarded by the queue's lock, except for the fields of `Place`.
    final class Ticket: Place, @unchecked Sendable {
        // Unchecked: like its superclass.

        enum State {
            case outside
            /// In a line.
            case inLine
            /// Waits, but not for a slot.
            case asleep
            /// Holds a slot.
            case running
            /// Needs no slot now: a composite after its registration, or an operation that is suspended or pauses.
            case aside
        }

        /// The operation; nil outside.
        @exclusivity(unchecked) var operation: AnyOperation?
        /// Its place among the waiting tickets; 0: none yet.
        @exclusivity(unchecked) var number: UInt64 = 0
        /// The address of its queue.
        @exclusivity(unchecked) private var queue: UnsafeRawPointer?
        // The list of all tickets that are not outside.
        @exclusivity(unchecked) fileprivate(set) var next: Unmanaged<Ticket>?
        @exclusivity(unchecked) fileprivate var previous: Unmanaged<Ticket>?
        /// How many of its blocks had begun when it was given the number.
        @exclusivity(unchecked) var runs: Int32 = 0
        @exclusivity(unchecked) fileprivate(set) var state = State.outside
        /// The priority that its operation had when the queue last examined it.
        @exclusivity(unchecked) var priority = Scheduler.Priority.default
        /// Whether the line of that priority has an entry for it with that number.
        @exclusivity(unchecked) var isListed = false
        /// Whether the operation is a child, which goes first and is not counted as pending. Set when the queue first
        /// examines it: an operation that has a number cannot become a child any more.
        @exclusivity(unchecked) var isChild = false
        private let instance = Instance(.tickets)

        /// Called before its operation is started.
        func isIn(_ queue: COOperationQueue) { self.queue = Self.address(of: queue) }

        /// Whether it belongs to a queue. Also true if it belonged to a deallocated queue with the same address; then
        /// it is outside.
        func isOf(_ queue: COOperationQueue) -> Bool { self.queue == Self.address(of: queue) }

        private static func address(of queue: COOperationQueue) -> UnsafeRawPointer {
            UnsafeRawPointer(Unmanaged.passUnretained(queue).toOpaque())
        }

        @inline(__always)
        var waits: Bool { state == .inLine || state == .asleep }
        /// Whether it waits, and is counted as pending.
        @inline(__always)
        var isPending: Bool { waits && !isChild }
    }

    /// The tickets of all operations in a queue, in the order of arrival, and how many there are of each kind.
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

        /// Changes the state of a ticket, and updates the counts.
        mutating func move(_ ticket: Ticket, to state: Ticket.State) {
            let former = ticket.state
            if former == state { return }
            if former == .running { running -= 1 }
            if ticket.isPending { pending -= 1 }
            if former == .outside { link(ticket) }
            if state == .outside {
                unlink(ticket)
                ticket.operation = nil  // the caller holds it
            }
            ticket.state = state
            if state == .running { running += 1 }
            if ticket.isPending {
                pending += 1
                keepFirst(ticket)
            }
        }

        /// Maintains I5 of the queue: a ticket has become pending.
        @inline(__always)
        private mutating func keepFirst(_ ticket: Ticket) {
            // Pending tickets, which are not those of children, are in the order of their numbers.
            skipOthers()
            let isBefore = firstPending?._withUnsafeGuaranteedRef { ticket.number < $0.number } ?? true
            if isBefore { firstPending = .passUnretained(ticket) }
        }

        /// - Complexity: O(1) amortised: skipped tickets are visited again only when one before them begins to wait
        ///   again.
        @inline(__always)
        private mutating func skipOthers() {
            while let ticket = firstPending, !ticket._withUnsafeGuaranteedRef({ $0.isPending }) {
                firstPending = ticket._withUnsafeGuaranteedRef { $0.next }
            }
        }

        /// The first pending ticket in the list.
        ///
        /// - Complexity: O(1) amortised.
        mutating func oldestPending() -> Ticket? {
            skipOthers()
            return firstPending?.takeUnretainedValue()
        }

        /// Gives a ticket a new number, the last of all. The ticket is not pending: it is new, or has held a slot since
        /// it last waited.
        mutating func number(_ ticket: Ticket, runs: Int32) {
            lastNumber += 1
            ticket.number = lastNumber
            ticket.isListed = false
            ticket.runs = runs
            guard ticket.state != .outside else { return }  // `move` will link it
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
