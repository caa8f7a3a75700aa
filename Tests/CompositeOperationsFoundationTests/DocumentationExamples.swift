// The examples of CompositeOperationsFoundation.docc, as in the file of this name of CompositeOperationsTests.

import CompositeOperations
import CompositeOperationsFoundation
import CompositeOperationsTestSupport
import Foundation
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct DocumentationExamples {
    @Test func `ours in a Foundation queue`() async throws {
        let log = Log()
        // CompositeOperationsFoundation.md
        let queue = OperationQueue()
        let steps = COCascadeOperation<Void> { cascade in
            cascade.operation { log.add("first") }
            cascade.operation { log.add("second") }
        }
        let after = BlockOperation { log.add("after") }
        let adapted = FoundationOperation(steps)
        after.addDependency(adapted)
        queue.addOperation(adapted)
        queue.addOperation(after)
        // end of the example
        await after.ended()
        #expect(log.entries == ["first", "second", "after"])
    }

    @Test func `a Foundation step among ours`() async throws {
        let log = Log()
        // CompositeOperationsFoundation.md
        let steps = cascadeOperation { cascade in
            cascade.operation { log.add("first") }
            let second = BlockOperation { log.add("second") }
            try cascade.add(COOperation(foundation: second))
        }
        // end of the example
        try await steps.value
        #expect(log.entries == ["first", "second"])
    }
}
