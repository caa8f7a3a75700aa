// The examples of the article in Actions.docc, as a test: so that they compile, and do what the article says.
// Scripts/documentation looks here for every Swift block of the article: the lines between the article's name and
// `end of the example`. Change both together.

import ActionTesting
import Actions
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

/// Stands in for a network.
private func answer(to query: String) async throws -> String {
    try Task.checkCancellation()
    return query
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) @MainActor struct DocumentationExamples {
    @Test func `overview`() async throws {
        // Actions.md
        let online = LiveValue(true)
        let search = Action<String, Int>("search", when: Precondition(online)) { query, _, _ in
            try await answer(to: query).count
        }
        let hits = try await search("swift")
        online.set(false)
        let refused = search.trigger("late").result
        // end of the example
        #expect(hits == 5)
        #expect(refused?.text == "rejected precondition")
        let button = FakeControl<String>()
        do {
            // Actions.md
            let binding = search.facade.bind(to: button)
            button.press("actor")
            // end of the example
            #expect(button.isEnabled == false)
            withExtendedLifetime(binding) {}
        }
    }
}
