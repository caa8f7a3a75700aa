// COOperationQueue+Line.swift - the operations that wait in a queue, in order.

internal import Scheduling

extension COOperationQueue {
    /// Two lines for each priority, one for children and one for all other operations; the highest priority first.
    ///
    /// Of 61 admissions, one goes to the lowest waiting priority, and another one to the default.
    struct Lines {
        private static let round = 61

        private var lines: [Line] = []
        /// A bit for each line, set if the line may have entries; the lowest bit is that of the first line.
        private var filled: UInt8 = 0
        /// Admissions in this round.
        private var admitted = 0

        init(newestFirst: Bool) {
            for priority in Scheduler.Priority.allCases.reversed() {
                lines.append(Line(priority, newestFirst: false))
                lines.append(Line(priority, newestFirst: newestFirst))
            }
        }

        mutating func insert(_ ticket: Ticket) {
            let place = Self.first(of: ticket.priority) + (ticket.isChild ? 0 : 1)
            filled |= 1 << UInt8(place)
            lines[place].insert(ticket)
        }

        /// Takes the next ticket out, with a reference.
        mutating func take() -> Unmanaged<Ticket>? {
            while filled != 0 {
                let place = next
                if let ticket = lines[place].take() { return ticket }
                filled &= ~(1 << UInt8(place))
            }
            return nil
        }

        /// The ticket that was taken was given a slot.
        mutating func hasAdmitted() { admitted = (admitted + 1) % Self.round }

        private static func first(of priority: Scheduler.Priority) -> Int {
            2 * (Scheduler.Priority.high.rawValue - priority.rawValue)
        }

        private var next: Int {
            var wanted = filled
            if admitted == Self.round - 1 {
                let lowest = (7 - filled.leadingZeroBitCount) / 2 * 2
                wanted = filled & (3 << UInt8(lowest))
            } else if admitted == Self.round / 2 {
                wanted = filled & (3 << UInt8(Self.first(of: .default)))
            }
            return (wanted == 0 ? filled : wanted).trailingZeroBitCount
        }
    }

    /// Tickets, ordered by number. Tickets that arrive in that order, as most do, are in an array; those that return to
    /// an earlier place are in a heap. The entry of a ticket that has moved elsewhere stays until it is reached.
    ///
    /// - Complexity: O(1) amortised; O(log n) for a ticket that returns.
    struct Line {
        private struct Entry {
            let number: UInt64
            /// With a reference, which is passed to the taker. No entry is left when the queue is deallocated: the
            /// queue is empty then, so a slot was free in the last call, which has taken all entries.
            let ticket: Unmanaged<Ticket>
        }

        /// While there are fewer entries than this, stale ones are not removed; capacity for this many is kept.
        private static let least = 32

        private let priority: Scheduler.Priority
        private let newestFirst: Bool
        private var entries: [Entry] = []
        private var head = 0
        private var late: [Entry] = []
        private var most = Self.least

        init(_ priority: Scheduler.Priority, newestFirst: Bool) {
            self.priority = priority
            self.newestFirst = newestFirst
        }

        /// - Returns: nil: the entry is stale. Its ticket is not in the line any more, or is in it again, with another
        ///   entry.
        @inline(__always)
        private func valid(_ entry: Entry) -> Unmanaged<Ticket>? {
            let isValid = entry.ticket._withUnsafeGuaranteedRef { ticket in
                // The ticket still has the same number and the same line.
                guard ticket.number == entry.number, ticket.priority == priority else { return false }
                if ticket.state == .inLine { return true }
                ticket.isListed = false
                return false
            }
            return isValid ? entry.ticket : nil
        }

        mutating func insert(_ ticket: Ticket) {
            if ticket.isListed { return }  // it has an entry already
            ticket.isListed = true
            if entries.count + late.count >= most { tidy() }
            let entry = Entry(number: ticket.number, ticket: .passRetained(ticket))
            if head < entries.count, entries[entries.count - 1].number > ticket.number {
                push(entry)
            } else {
                entries.append(entry)
            }
        }

        /// Takes the next ticket out, with the reference of its entry.
        mutating func take() -> Unmanaged<Ticket>? {
            while let entry = next() {
                if let ticket = valid(entry) {
                    ticket._withUnsafeGuaranteedRef { $0.isListed = false }
                    return ticket
                }
                entry.ticket.release()
            }
            if most == Self.least {
                entries.removeAll(keepingCapacity: true)
                head = 0
            } else {
                self = Line(priority, newestFirst: newestFirst)
            }
            return nil
        }

        @inline(__always)
        private mutating func next() -> Entry? {
            guard head < entries.count else { return late.isEmpty ? nil : pop() }
            let inOrder = entries[newestFirst ? entries.count - 1 : head]
            if let late = late.first, isBefore(late, inOrder) { return pop() }
            if newestFirst { entries.removeLast() } else { head += 1 }
            return inOrder
        }

        private mutating func tidy() {
            func areValid(_ entries: some Sequence<Entry>) -> [Entry] {
                entries.filter { entry in
                    let isValid = valid(entry) != nil
                    if !isValid { entry.ticket.release() }
                    return isValid
                }
            }
            (entries, head) = (areValid(entries[head...]), 0)
            let late = areValid(late)
            self.late = []
            for entry in late { push(entry) }
            most = max(Self.least, 2 * (entries.count + late.count))
        }

        private func isBefore(_ first: Entry, _ second: Entry) -> Bool {
            newestFirst ? first.number > second.number : first.number < second.number
        }

        private mutating func push(_ entry: Entry) {
            late.append(entry)
            var place = late.count - 1
            while place > 0, isBefore(entry, late[(place - 1) / 2]) {
                late[place] = late[(place - 1) / 2]
                place = (place - 1) / 2
            }
            late[place] = entry
        }

        private mutating func pop() -> Entry {
            let first = late[0]
            let last = late.removeLast()
            if late.isEmpty { return first }
            var place = 0
            while true {
                var below = 2 * place + 1
                if below + 1 < late.count, isBefore(late[below + 1], late[below]) { below += 1 }
                guard below < late.count, isBefore(late[below], last) else { break }
                late[place] = late[below]
                place = below
            }
            late[place] = last
            return first
        }
    }
}
