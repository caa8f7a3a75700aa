// COOperationQueue+Line.swift - who waits in a queue, in order.

extension COOperationQueue {
    /// Tickets by their numbers: in an array those that came in that order, most of all; in a heap those that came back to a place
    /// that they had. One that has left for another place stays until it is come upon.
    ///
    /// - Complexity: O(1) amortised, for who comes back O(log n).
    struct Line {
        private struct Entry {
            let number: UInt64
            let ticket: Ticket

            var isValid: Bool { ticket.place == .inLine && ticket.number == number }

            /// It is not in the line any more.
            func leaves() { if ticket.number == number { ticket.isListed = false } }
        }

        private let newestFirst: Bool
        private var entries: [Entry] = []
        private var head = 0
        private var late: [Entry] = []
        /// With so many entries, those that are not valid any more go.
        private var most = 32

        init(newestFirst: Bool = false) { self.newestFirst = newestFirst }

        mutating func insert(_ ticket: Ticket) {
            if ticket.isListed { return }  // it has been here
            ticket.isListed = true
            if entries.count + late.count >= most { tidy() }
            let entry = Entry(number: ticket.number, ticket: ticket)
            if head < entries.count, entries[entries.count - 1].number > ticket.number {
                push(entry)
            } else {
                entries.append(entry)
            }
        }

        /// The first one whose turn it is.
        mutating func take() -> Ticket? {
            while let entry = next() {
                entry.leaves()
                if entry.isValid { return entry.ticket }
            }
            self = Line(newestFirst: newestFirst)
            return nil
        }

        private mutating func next() -> Entry? {
            let inOrder = head < entries.count ? entries[newestFirst ? entries.count - 1 : head] : nil
            guard let inOrder else { return late.isEmpty ? nil : pop() }
            if let late = late.first, isBefore(late, inOrder) { return pop() }
            if newestFirst { entries.removeLast() } else { head += 1 }
            return inOrder
        }

        private mutating func tidy() {
            func areValid(_ entries: some Sequence<Entry>) -> [Entry] {
                entries.filter { entry in
                    if !entry.isValid { entry.leaves() }
                    return entry.isValid
                }
            }
            (entries, head) = (areValid(entries[head...]), 0)
            let late = areValid(late)
            self.late = []
            for entry in late { push(entry) }
            most = max(32, 2 * (entries.count + late.count))
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
