// Problems.swift - finds nodes that wait for each other, and forgotten ends; a pure function of nodes and waits.
//
// A node can proceed when all nodes that it waits for can, or, if it needs a slot of a queue, when one of them can. A node
// that waits for no known node can proceed. Hence each remaining node waits for other remaining nodes. Among these, one cycle
// is found in each strongly connected component. A wait with a timeout is ignored: it ends by itself.

internal import CompositeOperationsBasics

/// The problems, which a reader should look at first.
struct Problems {
    private let nodes: [InspectedNode]
    private let waits: [Dump.Wait]
    private var places: [String: Int] = [:]
    private var roots: [Int] = []
    /// The nodes that each node waits for.
    private var edges: [[Int]]

    init(_ nodes: [InspectedNode], _ waits: [Dump.Wait]) {
        self.nodes = nodes
        self.waits = waits
        edges = Array(repeating: [], count: nodes.count)
        for (place, node) in nodes.enumerated() where places[node.id] == nil { places[node.id] = place }
        addEdges()
    }

    private mutating func addEdges() {
        var path: [Int] = []
        for (place, node) in nodes.enumerated() {
            path.removeLast(max(0, path.count - node.depth))
            roots.append(path.first ?? place)
            // The nodes below a queue are tickets, which wait for nothing themselves.
            if node.kind == "ticket" { continue }
            if let parent = path.last { edges[parent].append(place) }
            path.append(place)
            for wait in node.waitsFor {
                if let other = places[wait.id] {
                    edges[place].append(other)
                } else if node.waitsForAny {
                    edges[place] = []  // an unknown node, which may proceed
                    break
                }
            }
        }
        for wait in waits where !wait.hasLimit {
            if let waiter = wait.waiter.flatMap({ places[$0] }), let other = places[wait.id] {
                edges[waiter].append(other)
            }
        }
    }

    private func title(_ place: Int) -> String { Dump.Node(nodes[place], .now).title }

    /// The title of a node, followed by the title of its tree's root.
    private func title(of id: String) -> String {
        guard let place = places[id] else { return "operation \(id)" }
        return roots[place] == place ? title(place) : "\(title(place)) of \(title(roots[place]))"
    }

    // MARK: Cycles

    var cycles: [Dump.Problem] {
        cyclesOfPlaces.map { cycle in
            let names = cycle.map { title($0) }
            return Dump.Problem(
                kind: .cycle,
                text: (names + names.prefix(1)).joined(separator: " waits for ")
                    + ": none of them can continue",
                ids: cycle.map { nodes[$0].id })
        }
    }

    /// Whether each node can proceed, as far as is known.
    private var goOn: [Bool] {
        var waiters: [[Int]] = Array(repeating: [], count: nodes.count)
        var open = edges.map { Set($0).count }
        for (place, others) in edges.enumerated() {
            for other in Set(others) { waiters[other].append(place) }
        }
        var goOn = open.map { $0 == 0 }
        var walk = goOn.indices.filter { goOn[$0] }
        while let place = walk.popLast() {
            for waiter in waiters[place] where !goOn[waiter] {
                open[waiter] -= 1
                if open[waiter] == 0 || nodes[waiter].waitsForAny {
                    goOn[waiter] = true
                    walk.append(waiter)
                }
            }
        }
        return goOn
    }

    /// One cycle from each strongly connected component.
    private var cyclesOfPlaces: [[Int]] {
        let goOn = goOn
        let stuck = edges.enumerated().map { place, others in
            goOn[place] ? [] : others.filter { !goOn[$0] }
        }
        var found: [[Int]] = []
        // 0: not seen; 1: on the path; 2: done.
        var states = Array(repeating: 0, count: nodes.count)
        for start in stuck.indices where states[start] == 0 && !goOn[start] {
            var path = [(place: start, next: 0)]
            states[start] = 1
            while let (place, next) = path.last {
                guard next < stuck[place].count else {
                    states[place] = 2
                    path.removeLast()
                    continue
                }
                path[path.count - 1].next += 1
                let other = stuck[place][next]
                switch states[other] {
                case 0:
                    states[other] = 1
                    path.append((other, 0))
                case 1:
                    // The nodes of the cycle are done: further cycles through them have the same cause.
                    let first = path.firstIndex { $0.place == other } ?? 0
                    found.append(path[first...].map(\.place))
                    for step in path[first...] { states[step.place] = 2 }
                    path.removeSubrange(first...)
                default: break
                }
            }
        }
        return found
    }

    // MARK: Single nodes

    var forgotten: [Dump.Problem] {
        nodes.filter(\.isForgotten).map { node in
            Dump.Problem(
                kind: .forgottenFinish,
                text: "\(title(of: node.id)): its block has returned without an end; "
                    + "`finish()` is forgotten, or has yet to come",
                ids: [node.id])
        }
    }

    var blocked: [Dump.Problem] {
        waits.compactMap { wait in
            guard let waiter = wait.waiter, let thread = wait.thread else { return nil }
            return Dump.Problem(
                kind: .blockedThread,
                text: "thread \(thread) is blocked in a block of \(title(of: waiter)): "
                    + "for \(wait.age) s it has waited for \(title(of: wait.id))",
                ids: [waiter, wait.id])
        }
    }
}
