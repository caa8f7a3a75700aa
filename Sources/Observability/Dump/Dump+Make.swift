// Dump+Make.swift - makes a dump from the registered objects, within its limits.
//
// All references to live objects are released once the dump is complete, under no lock.

internal import CompositeOperationsBasics

extension Dump {
    init(limit: Int, stacks: Bool) {
        self.init(limit: limit, isOn: Inspectables.areKept)
        let now = ContinuousClock.now
        let made = Inspected(limit)
        trees = made.section(.operations, now)
        queues = made.section(.queues, now)
        invokers = made.section(.invokers, now)
        transactions = made.section(.transactions, now)
        actions = made.section(.actions, now)
        gates = made.section(.gates, now)
        let (some, others) = InspectedWaits.some(most: limit)
        waits = some.prefix(limit).map { Wait($0, now) }
        omittedWaits = others + some.count - waits.count
        schedulers = SchedulerState.all()
        // Each worker's body and its start are known only if they are recorded.
        if Recorder.isOn { changeWorkers { $0.addBody() } }
        if stacks { changeWorkers { $0.addStack() } }
        problems = made.problems(waits, blockedWorkers)
    }

    private mutating func changeWorkers(_ change: (inout SchedulerState.Worker) -> Void) {
        for scheduler in schedulers.indices {
            for worker in schedulers[scheduler].workers.indices {
                change(&schedulers[scheduler].workers[worker])
            }
        }
    }

    private var blockedWorkers: [Problem] {
        schedulers.flatMap { scheduler in
            scheduler.workers.filter { $0.activity == .blocks }.map { worker in
                Problem(
                    kind: .blockedWorker,
                    text:
                        "worker \(worker.index) of scheduler '\(scheduler.name)', thread \(worker.thread), is "
                        + "blocked in a body" + (worker.body.map { ", \($0)" } ?? ""),
                    ids: [])
            }
        }
    }
}

/// The nodes of all kinds.
private struct Inspected {
    private var nodes: [Inspectables.Kind: [InspectedNode]] = [:]
    private var omitted: [Inspectables.Kind: Int] = [:]
    /// The inspected objects, held until the dump is complete.
    private var held: [any Inspectable] = []

    init(_ limit: Int) {
        var found: [(kind: Inspectables.Kind, one: Inspectables.Kept)] = []
        for kind in Inspectables.Kind.allCases {
            // Some entries are dead or have ended; a kind has few entries beyond twice the number of its
            // live objects.
            let (some, others) = Inspectables.some(of: kind, most: 4 * limit + 8_192)
            omitted[kind] = others
            found += some.map { (kind, $0) }
        }
        // Other nodes refer to queues.
        var names: [ObjectIdentifier: String] = [:]
        var objects: [Int: any Inspectable] = [:]
        for (kind, one) in found {
            guard let object = one.object else { continue }
            held.append(object)
            objects[one.number] = object
            if kind == .queues { names[ObjectIdentifier(object)] = "queue \(one.number)" }
        }
        for kind in Inspectables.Kind.allCases {
            let all = found.filter { $0.kind == kind }.map(\.one)
            inspect(kind, all, objects, names, limit)
        }
    }

    private mutating func inspect(
        _ kind: Inspectables.Kind, _ all: [Inspectables.Kept], _ objects: [Int: any Inspectable],
        _ names: [ObjectIdentifier: String], _ limit: Int
    ) {
        let alive = all.filter { one in
            objects[one.number].map { !$0.isPastInspection } ?? (one.value != nil)
        }
        var gathered: [InspectedNode] = []
        var looks = 8 * limit + 1_024
        for (index, one) in alive.enumerated() {
            let room = limit - gathered.count
            if room <= 0 {
                omitted[kind, default: 0] += alive.count - index
                break
            }
            // Reserve one node and one look for each of the following roots, as far as the room allows.
            let reserve = min(alive.count - index - 1, room - 1)
            var inspector = Inspector(
                room: room - reserve, looks: max(1, looks - reserve), names: names, one)
            if let object = objects[one.number] {
                object.inspect(&inspector)
            } else if let value = one.value {
                inspector.add(value)
            }
            looks -= max(0, looks - reserve) - max(0, inspector.looks)
            gathered += inspector.nodes
        }
        nodes[kind] = gathered
    }

    func section(_ kind: Inspectables.Kind, _ now: ContinuousClock.Instant) -> Dump.Section {
        Dump.Section(
            nodes: (nodes[kind] ?? []).map { Dump.Node($0, now) }, omitted: omitted[kind] ?? 0)
    }

    func problems(_ waits: [Dump.Wait], _ blockedWorkers: [Dump.Problem]) -> [Dump.Problem] {
        let known = (nodes[.operations] ?? []) + (nodes[.queues] ?? [])
        let problems = Problems(known, waits)
        return problems.cycles + blockedWorkers + problems.blocked + problems.forgotten
    }
}

extension Dump.Node {
    init(_ node: InspectedNode, _ now: ContinuousClock.Instant) {
        self.init(
            depth: node.depth, kind: node.kind, name: node.name, id: node.id, state: node.state,
            age: node.since.map { seconds(from: $0, to: now) }, notes: node.notes,
            waitsFor: node.waitsFor.map { Dump.Reason(why: $0.why, id: $0.id) }, omitted: node.omitted)
    }
}

extension Dump.Wait {
    fileprivate init(_ wait: InspectedWaits.Wait, _ now: ContinuousClock.Instant) {
        self.init(
            waiter: wait.waiter == 0 ? nil : "#\(wait.waiter)", thread: wait.thread, id: "#\(wait.target)",
            hasLimit: wait.hasLimit, age: seconds(from: wait.since, to: now))
    }
}

/// At least 0: an entry that began after the dump began counts as new.
private func seconds(from start: ContinuousClock.Instant, to end: ContinuousClock.Instant) -> Double {
    let (seconds, attoseconds) = max(.zero, start.duration(to: end)).components
    return Double(seconds) + Double(attoseconds / 1_000_000_000_000) / 1_000_000
}
