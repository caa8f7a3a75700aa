// AnyOperation+Inspection.swift - what dumps show of a tree of operations, and of waits for an operation.
//
// A tree is walked in critical sections. Each visits 32 operations at most, copies their state, and retains the
// operations that it has to name; texts are built under no lock. So a worker that needs the lock waits for some
// microseconds. The tree may change between two sections: a dump shows each operation as it was when visited, not the
// tree as it was at one moment.
//
// Plain children are counted, and stay plain: looking at one would take all of them, and so change what is inspected.

internal import CInspection
package import CompositeOperationsBasics
@_spi(Faces) internal import Runs
internal import Scheduling

extension AnyOperation {
    /// Keeps a root for dumps, and begins its trace, before its block begins. Under no lock.
    @inline(__always)
    final func keepForDumps() { if inspection_is_on_or_traces() { keepNow() } }

    @inline(never)
    private final func keepNow() {
        if inspection_traces() { beginTrace() }
        guard inspection_is_on() else { return }
        COQueues.beginSurroundings()  // from now on blocks know their operations
        Inspectables.keep(self, .operations)
    }

    /// A wait for its end begins, by the calling thread or by the task that runs here. Under no lock.
    ///
    /// - Returns: the argument of `InspectedWaits.end`; 0: the wait is not kept.
    @inline(__always)
    final func keepWait(isTask: Bool, hasLimit: Bool) -> Int {
        inspection_is_on() ? keepWaitNow(isTask, hasLimit) : 0
    }

    @inline(never)
    private final func keepWaitNow(_ isTask: Bool, _ hasLimit: Bool) -> Int {
        InspectedWaits.begin(
            COQueues.surroundings?.block ?? 0, for: id.number, isTask: isTask, hasLimit: hasLimit)
    }

    /// For ``Surroundings/block``; 0: inspection is off.
    @inline(__always)
    final var numberForDumps: UInt64 { inspection_is_on() ? id.number : 0 }
}

extension AnyOperation: Inspectable {
    package final var isPastInspection: Bool {
        look { isChild || machine.isTerminal }
    }

    package final func inspect(_ inspector: inout Inspector) {
        let root = look { Sight(self, gateIsOpen: !machine.isGateClosed) }
        guard !root.isPast, let place = inspector.add(root.node(0, after: nil, inspector)) else { return }
        var walk: [Walk] = []
        if let composite = Walk(of: root, place, depth: 1) { walk.append(composite) }
        while var composite = walk.popLast() {
            let most = min(32, inspector.room, inspector.looks)
            if most <= 0 {
                inspector.omit(composite.rest, below: composite.place)
                continue
            }
            let section = composite.take(most)
            inspector.looked(at: section.looks)
            var below: Walk?
            for child in section.children {
                let node = child.node(composite.depth, after: composite.former, inspector)
                composite.former = child.operation
                guard let place = inspector.add(node) else { break }
                below = Walk(of: child, place, depth: composite.depth + 1)
            }
            if !section.isOver { walk.append(composite) }
            if let below { walk.append(below) }
        }
    }
}

/// A snapshot of an operation.
private struct Sight {
    let operation: AnyOperation
    private let machine: OperationMachine
    private let label: OperationState
    private let name: String?
    private let isGated: Bool
    private let queue: ObjectIdentifier?
    private let isQueueOpen: Bool
    /// Its dependencies, 16 at most, and how many there are.
    private var dependencies: [AnyOperation] = []
    private var unmet = 0
    private var timers = 0
    private var isAwaited = false
    private var composite: Composite?

    private struct Composite {
        let epoch: Int32
        let unfinished: Int
        /// How many plain ones there are; nil: only the registering thread knows.
        let plain: Int?
        let isRegistering: Bool
        let isInOrder: Bool
        let isCompleting: Bool
    }

    /// Under the lock.
    init(_ operation: AnyOperation, gateIsOpen: Bool) {
        self.operation = operation
        machine = operation.machine
        isGated = machine.isGateClosed
        label = operation.label(gateIsOpen: gateIsOpen)
        name = operation.extras?.options?.name
        queue = operation.admissionReference?._withUnsafeGuaranteedRef { ObjectIdentifier($0) }
        isQueueOpen = operation.queueIsOpen
        if let extras = operation.extras {
            unmet = extras.unmetDependencies
            dependencies = extras.dependencies.prefix(16).compactMap(\.other)
            timers = extras.timers.count { !$0.isDiagnostic }
            isAwaited = !extras.waiters.isEmpty
        }
        composite = operation.withComposition { composition in
            let isPlain = composition.plain.areThere
            return Composite(
                epoch: composition.epoch,
                unfinished: composition.unfinished,
                plain: !isPlain ? 0 : composition.isRegistering ? nil : composition.plain.store?.count,
                isRegistering: composition.isRegistering, isInOrder: composition.order.width == 1,
                isCompleting: composition.isCompletionOut)
        }
    }

    var isPast: Bool { machine.isTerminal }
    var epoch: Int32? { composite?.epoch }
    var isInOrder: Bool { composite?.isInOrder == true }
    var gateIsOpen: Bool { label != .suspended && !isGated }

    /// Under no lock.
    ///
    /// - Parameter former: the last child before it that has not finished.
    func node(_ depth: Int, after former: AnyOperation?, _ inspector: Inspector) -> InspectedNode {
        var node = InspectedNode(
            operation.kindName, name: name, id: "\(operation.id)", state: "\(label)")
        node.depth = depth
        if machine.attempt > 0 { node.notes.append("attempt \(machine.attempt)") }
        if isGated { node.notes.append("its gate is closed") }
        if !isQueueOpen { node.notes.append("its queue is suspended") }
        describePhase(&node, after: former, inspector)
        if let composite { describe(composite, &node) }
        if timers > 0 { node.notes.append(timers == 1 ? "a timer is set" : "\(timers) timers are set") }
        if isAwaited { node.notes.append("its end is awaited") }
        return node
    }

    private func describePhase(
        _ node: inout InspectedNode, after former: AnyOperation?, _ inspector: Inspector
    ) {
        switch machine.phase {
        case .ready:
            if let former { node.waitsFor.append(.init("comes after", "\(former.id)")) }
            describeDependencies(&node)
        case .queued:
            describeDependencies(&node)
            if machine.isPosted {
                node.notes.append("its turn is scheduled but has not begun")
            } else if let queue, unmet == 0, gateIsOpen {
                if let id = inspector.id(of: queue) {
                    node.waitsFor.append(.init("needs a slot of", id))
                } else {
                    node.notes.append("needs a slot of its queue")
                }
            }
        case .executing:
            if machine.isOut {
                node.notes.append(composite == nil ? "its block runs" : "its block registers children")
            } else if machine.awaitsItsEnd, composite == nil {
                node.isForgotten = true
                node.notes.append("its block has returned without an end")
            }
        case .deciding: node.notes.append("a decision is pending")
        case .delayed:
            if machine.isPaused { node.notes.append("pauses before the next attempt") }
            if machine.isOut { node.notes.append("the block of an earlier attempt is still running") }
        case .ending: if machine.isOut { node.notes.append("its block is still running") }
        case .finished, .failed, .cancelled: break
        }
    }

    private func describeDependencies(_ node: inout InspectedNode) {
        for other in dependencies { node.waitsFor.append(.init("depends on", "\(other.id)")) }
        if unmet > dependencies.count { node.notes.append("has \(unmet) dependencies that are not met") }
    }

    private func describe(_ composite: Composite, _ node: inout InspectedNode) {
        if machine.isTerminal { return }
        switch composite.plain {
        case nil: node.notes.append("has plain children, which are not listed")
        case let count? where count > 0:
            node.notes.append("has \(count) plain children, which are not listed")
        default:
            if composite.unfinished > 0 {
                node.notes.append("\(composite.unfinished) of its children have not finished")
            }
        }
    }
}

/// The walk over the children of one composite.
private struct Walk {
    private let composite: AnyOperation
    let place: Int
    let depth: Int
    private let epoch: Int32
    private let isInOrder: Bool
    private let gateIsOpen: Bool
    /// The index of the next child, among all children.
    private var next = 0
    private var unfinished: AnyOperation?

    /// The last child that was seen, if the next one waits for it.
    var former: AnyOperation? {
        get { isInOrder ? unfinished : nil }
        set { unfinished = newValue }
    }

    /// The findings of a section.
    struct Section {
        var children: [Sight] = []
        var looks = 0
        var isOver = true
    }

    init?(of sight: Sight, _ place: Int, depth: Int) {
        guard let epoch = sight.epoch else { return nil }
        composite = sight.operation
        self.place = place
        self.depth = depth
        self.epoch = epoch
        isInOrder = sight.isInOrder
        gateIsOpen = sight.gateIsOpen
    }

    /// Visits the next children: `most` at most, and no further than the first composite, whose own children come next.
    mutating func take(_ most: Int) -> Section {
        composite.look {
            var section = Section()
            guard let composition = composite.composition, composition.epoch == epoch else { return section }
            let first = composition.plain.areThere ? composition.plain.count : 0
            next = max(next, first)
            while next - first < composition.operations.count, section.looks < most {
                let child = composition.operations[next - first]
                next += 1
                section.looks += 1
                if child.machine.isTerminal { continue }
                let gateIsOpen = gateIsOpen && !child.machine.isGateClosed
                section.children.append(Sight(child, gateIsOpen: gateIsOpen))
                if child.isComposite { break }
            }
            section.isOver = next - first >= composition.operations.count
            return section
        }
    }

    /// How many children it has not visited.
    var rest: Int {
        composite.look {
            guard let composition = composite.composition, composition.epoch == epoch else { return 0 }
            let first = composition.plain.areThere ? composition.plain.count : 0
            return max(0, composition.operations.count - (max(next, first) - first))
        }
    }
}
