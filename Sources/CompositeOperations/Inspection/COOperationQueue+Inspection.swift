// COOperationQueue+Inspection.swift - what dumps show of a queue: its limits, and the tickets that came first.

package import CompositeOperationsBasics
internal import Scheduling

extension COOperationQueue: Inspectable {
    package var isPastInspection: Bool { false }

    package func inspect(_ inspector: inout Inspector) {
        let sample = sample(64)
        let id = inspector.id(of: ObjectIdentifier(self)) ?? "queue"
        var node = InspectedNode("queue", id: id, state: isSuspended ? "suspended" : "open")
        let limit = sample.runningLimit.map { " of \($0)" } ?? ""
        node.notes.append("\(sample.running)\(limit) slots are held")
        node.notes.append("\(sample.pending) wait, children not counted")
        if let limit = sample.pendingLimit { node.notes.append("\(limit) may wait") }
        // If the holders of all slots are in the sample, an operation that waits for a slot waits for the first of them
        // to leave.
        if sample.running == sample.runningLimit, sample.holders.count == sample.running {
            node.waitsFor = sample.holders.map { .init("its slot is held by", "\($0.id)") }
            node.waitsForAny = true
        }
        let place = inspector.add(node)
        var listed = 0
        for (operation, state) in sample.tickets {
            // The id is the ticket's: the operation has its own node, in its tree.
            var node = InspectedNode("ticket", id: "ticket of \(operation.id)", state: Self.word(for: state))
            node.depth = 1
            node.notes.append("\(operation)")
            if inspector.add(node) == nil { break }
            listed += 1
        }
        if let place { inspector.omit(sample.count - listed, below: place) }
    }

    private static func word(for state: Ticket.State) -> String {
        switch state {
        case .outside: "outside"
        case .inLine: "in line"
        case .asleep: "waits, though not for a slot"
        case .running: "holds a slot"
        case .aside: "aside"
        }
    }

    /// Some of the operations in a queue, and how many there are.
    struct Sample {
        let runningLimit: Int?
        let pendingLimit: Int?
        let running: Int
        let pending: Int
        let count: Int
        /// The tickets that came first.
        let tickets: [(operation: AnyOperation, state: Ticket.State)]

        var holders: [AnyOperation] { tickets.filter { $0.state == .running }.map(\.operation) }
    }
}
