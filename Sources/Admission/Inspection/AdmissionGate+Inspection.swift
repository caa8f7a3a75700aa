// AdmissionGate+Inspection.swift - what dumps show of a gate: its slots, and what each tenant has running and waiting.

package import CompositeOperationsBasics

extension AdmissionGate: Inspectable {
    package var isPastInspection: Bool { false }

    package func inspect(_ inspector: inout Inspector) {
        let (width, running, waiting, isClosed, tenants) = section { state in
            (state.width, state.running, state.waiting, state.isClosed, state.someFigures(64))
        }
        var node = InspectedNode(
            "admission gate", id: "gate \(inspector.number)", state: isClosed ? "closed" : "open")
        node.notes = ["\(running) of \(width) slots are held", "\(waiting) wait"]
        let place = inspector.add(node)
        var listed = 0
        for (number, figures) in tenants.some {
            var node = InspectedNode(
                below: "tenant", id: "tenant \(number) of gate \(inspector.number)",
                state: figures.waiting > 0 ? "waiting" : figures.running > 0 ? "running" : "silent")
            node.notes = [
                "\"\(figures.name)\" of weight \(figures.weight)",
                "\(figures.running) run, \(figures.waiting) wait, \(figures.refused) were refused",
            ]
            if inspector.add(node) == nil { break }
            listed += 1
        }
        if let place { inspector.omit(tenants.count - listed, below: place) }
    }
}
