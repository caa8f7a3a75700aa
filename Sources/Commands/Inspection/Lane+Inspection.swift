// Lane+Inspection.swift - what dumps show of an invoker: how many runs execute and wait, and some of the runs.
//
// One critical section of the lane's lock copies counts and retains at most 64 runs; each run is then read under
// its own lock.

import CompositeOperationsBasics
@_spi(Faces) internal import Runs
internal import Scheduling

extension Lane: Inspectable {
    var isPastInspection: Bool { false }

    func inspect(_ inspector: inout Inspector) {
        let sample = sample(64)
        var node = InspectedNode(
            "invoker", name: inspector.name, id: "invoker \(inspector.number)",
            state: sample.isShutDown ? "shut down" : "open")
        node.notes.append("\(sample.running) of \(limit) slots are held")
        node.notes.append("\(max(0, sample.waiting)) wait")
        if batching != nil { node.notes.append("\(sample.gathering) gather for a batch") }
        if let capacity { node.notes.append("\(sample.count) of \(capacity) are accepted") }
        if sample.hasFlushes { node.notes.append("its end is awaited") }
        let place = inspector.add(node)
        var listed = 0
        for run in sample.members {
            if inspector.add(run.node) == nil { break }
            listed += 1
        }
        if let place { inspector.omit(max(0, sample.count - listed), below: place) }
    }
}

extension CommandRun {
    fileprivate final var node: InspectedNode {
        let (state, isAwaited, body) = locked { fields in
            (fields.machine.state, !fields.waiters.isEmpty, fields.held)
        }
        var node = InspectedNode(
            "command", name: body?.nameOfCommand, id: transaction.name, state: "\(state)")
        node.depth = 1
        if isCancelRequested { node.notes.append("its cancellation is requested") }
        if isAwaited { node.notes.append("its end is awaited") }
        return node
    }
}
