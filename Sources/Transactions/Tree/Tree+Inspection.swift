// How dumps show a tree with an open transaction. A tree lives in one isolation, and dumps are made in another. So a dump
// reads values that are recorded when the gate is opened and kept until it is closed, and the number of waiters from a table
// shared by all isolations.

import CompositeOperationsBasics

extension Tree {
    /// Called when the gate has been opened.
    @inline(never)
    func keepForDumps(_ transaction: Transaction, _ opener: Opener) {
        let (serial, number) = (serial, transaction.number)
        let how =
            switch opener {
            case .byHand: "begun by hand"
            case .closure: "in a closure"
            case .task: "in a task"
            }
        let name = root?.owner.map { "\(Swift.type(of: $0))" }
        Inspectables.keep(.transactions, key: UInt(serial), name: name) {
            var node = InspectedNode(
                "transaction", name: name, id: "transaction \(number) of tree \(serial)", state: how)
            let waiting = WaitGraph.numberWaiting(for: serial)
            if waiting > 0 { node.notes.append("waiting for its tree: \(waiting)") }
            return node
        }
    }

    /// Called when the gate is about to be closed.
    @inline(never)
    func forgetForDumps() { Inspectables.forget(.transactions, key: UInt(serial)) }
}
