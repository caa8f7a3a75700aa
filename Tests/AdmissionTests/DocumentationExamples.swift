// DocumentationExamples - what the articles show, verbatim.

import Admission
import CompositeOperationsTestSupport
import PropertyTestingSupport
import Testing

private func render(_ request: Int) -> String { "page \(request)" }

@Suite(.inTurn, .watched(testLimit), .leavesNothing)
struct DocumentationExamples {
    @Test func `a gate with two tenants`() async throws {
        let request = 1
        let gate = AdmissionGate(width: 8)
        let paying = gate.tenant("paying", weight: 7)
        let free = gate.tenant("free", weight: 1, limit: 100, whenFull: .dropOldest)
        let page = try await paying.run(startingBy: .now + .milliseconds(200)) { render(request) }
        #expect(page == "page 1")
        func answer() async throws -> String {
            do {
                return try await free.run(startingBy: .now + .milliseconds(50)) { render(request) }
            } catch let refusal as Refusal where refusal.reason == .late {
                return "503 Service Unavailable, Retry-After: \(refusal.expectedWait ?? .seconds(1))"
            }
        }
        #expect(try await answer() == "page 1")
        for tenant in gate.figures {
            print(tenant.name, tenant.running, tenant.waiting, tenant.refused, tenant.longestWait)
        }
        #expect(gate.figures.map(\.ended) == [1, 1])
    }
}
