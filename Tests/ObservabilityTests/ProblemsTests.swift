// ProblemsTests - which of the given nodes wait for each other.

import CompositeOperationsBasics
@testable import Observability
import PropertyTestingSupport
import Testing

private func node(
    _ id: String, kind: String = "operation", depth: Int = 0, any: Bool = false, waitsFor others: String...
) -> InspectedNode {
    var node = InspectedNode(kind, id: id, state: "executing")
    node.depth = depth
    node.waitsForAny = any
    node.waitsFor = others.map { InspectedNode.Wait("waits for", $0) }
    return node
}

private func wait(_ waiter: String?, for id: String, thread: Int? = nil, hasLimit: Bool = false) -> Dump.Wait
{
    Dump.Wait(waiter: waiter, thread: thread, id: id, hasLimit: hasLimit, age: 1)
}

private func cycles(_ nodes: [InspectedNode], _ waits: [Dump.Wait] = []) -> [[String]] {
    Problems(nodes, waits).cycles.map { $0.ids.sorted() }
}

@Suite(.inTurn) struct ProblemsTests {
    @Test func `a wait with a timeout may go on, and a wait without one does not`() {
        let nodes = [node("#1"), node("#2", waitsFor: "#1")]
        #expect(cycles(nodes, [wait("#1", for: "#2")]) == [["#1", "#2"]])
        #expect(cycles(nodes, [wait("#1", for: "#2", hasLimit: true)]) == [])
        #expect(cycles(nodes, [wait(nil, for: "#2")]) == [])
    }

    @Test func `a queue goes on when any of its slot holders does`() {
        let nodes = [
            node("queue 9", kind: "queue", any: true, waitsFor: "#1", "#2"), node("#1", waitsFor: "queue 9"),
            node("#2"),
        ]
        #expect(cycles(nodes) == [])
        #expect(cycles(nodes, [wait("#2", for: "#1")]).count == 1)
    }

    @Test func `a slot with an unknown holder may become free`() {
        #expect(
            cycles([
                node("queue 9", kind: "queue", any: true, waitsFor: "#1", "#7"),
                node("#1", waitsFor: "queue 9"),
            ]) == [])
        #expect(cycles([node("#1", waitsFor: "#2", "#7"), node("#2", waitsFor: "#1")]) == [["#1", "#2"]])
    }

    @Test func `each strongly connected part is reported once`() {
        #expect(
            cycles([
                node("#1", waitsFor: "#2"), node("#2", waitsFor: "#3", "#1"),
                node("#3", waitsFor: "#1", "#2"),
                node("#4", waitsFor: "#1"), node("#5", waitsFor: "#6"), node("#6", waitsFor: "#5"),
            ]).map(\.count).sorted() == [2, 3])
        #expect(cycles([node("#1", waitsFor: "#1")]) == [["#1"]])
    }

    @Test func `a tree waits for its descendants, and is named with them`() {
        let nodes = [
            node("#1", kind: "cascade"), node("#2", depth: 1, waitsFor: "#3"),
            node("#3", kind: "cascade"), node("#4", depth: 1, waitsFor: "#1"),
        ]
        #expect(cycles(nodes) == [["#1", "#2", "#3", "#4"]])
        var forgotten = nodes
        forgotten[1].isForgotten = true
        let problems = Problems(forgotten, [wait("#4", for: "#9", thread: 5), wait("#2", for: "#3")])
        #expect(problems.forgotten.map(\.ids) == [["#2"]])
        #expect(problems.forgotten[0].text.hasPrefix("operation #2 of cascade #1: its block has returned"))
        #expect(
            problems.blocked.map(\.text) == [
                "thread 5 is blocked in a block of operation #4 of cascade #3: for 1.0 s it has waited for operation #9"
            ])
    }
}
