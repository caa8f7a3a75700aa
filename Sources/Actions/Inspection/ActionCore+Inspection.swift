// ActionCore+Inspection.swift - what dumps show of an action: its gate, and some of its executions.
//
// One critical section of the gate's lock copies a count and at most 33 execution IDs.

@_spi(Faces) import CompositeOperationsBasics
@_spi(Faces) internal import Runs

extension ActionCore: Inspectable {
    var isPastInspection: Bool { false }

    func inspect(_ inspector: inout Inspector) {
        let snapshot = snapshot
        var node = InspectedNode(
            "action", name: id.name.isEmpty ? nil : id.name, id: "action \(id.number)",
            state: snapshot.isExecuting ? "executing" : snapshot.isEnabled ? "enabled" : "disabled")
        node.notes.append("\(snapshot.running) of \(snapshot.limit) run")
        if snapshot.waiting > 0 { node.notes.append("\(snapshot.waiting) wait") }
        if index != nil { node.notes.append("in a group, whose slots it uses") }
        let place = inspector.add(node)
        let most = 32
        let (runs, first, count, isDirect) = gate.withLock {
            _ -> ([ExecutionID], ExecutionID?, Int, Bool) in
            (Array(running.keys.prefix(most)), line.first?.id, running.count, isInDirectly)
        }
        if isDirect, let place { inspector.note("one runs in its trigger", of: place) }
        var listed = 0
        for run in runs {
            if inspector.add(InspectedNode(below: "execution", id: "\(run)", state: "executing")) == nil {
                break
            }
            listed += 1
        }
        if let first {
            inspector.add(InspectedNode(below: "execution", id: "\(first)", state: "first in line"))
        }
        if let place { inspector.omit(count - listed, below: place) }
    }
}
