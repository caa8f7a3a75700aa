// InspectionTests - gates in dumps. Each test has its own process, because inspection is switched on for a whole process.

import Admission
import CompositeOperationsTestSupport
import Observability
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct InspectionTests {
    @Test func `a dump shows a gate, its slots and its tenants`() async {
        await #expect(processExitsWith: .success) {
            Inspection.start()
            let held = try HeldGate()
            let free = held.gate.tenant("free", weight: 3, limit: 2)
            try free.submit {}
            try free.submit {}
            #expect(throws: Refusal.self) { try free.submit {} }
            let nodes = Inspection.dump().gates.nodes
            #expect(nodes.map(\.depth) == [0, 1, 1])
            #expect(nodes.map(\.kind) == ["admission gate", "tenant", "tenant"])
            #expect(nodes.map(\.state) == ["open", "running", "waiting"])
            #expect(nodes[0].notes == ["1 of 1 slots are held", "2 wait"])
            #expect(nodes[2].notes == ["\"free\" of weight 3", "0 run, 2 wait, 1 were refused"])
            held.gate.close()
            #expect(Inspection.dump().gates.nodes[0].state == "closed")
            #expect("\(Inspection.dump())".contains("gates:"))
            try await held.end()
        }
    }

    @Test func `some of many tenants are shown, and others counted`() async {
        await #expect(processExitsWith: .success) {
            Inspection.start()
            let gate = AdmissionGate()
            let tenants = (0..<1_000).map { gate.tenant("\($0)") }
            let nodes = Inspection.dump().gates.nodes
            #expect(nodes.count == 65)
            #expect(nodes[0].omitted == 936)
            withExtendedLifetime(tenants) {}
        }
    }
}
