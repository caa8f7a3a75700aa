// Trees of classes that belong to an actor, with isolated conformances: X15.

import CompositeOperationsTestSupport
import PropertyTestingSupport
import Testing
import Transactions

@MainActor final class Document: @MainActor LoggedTransactable, @MainActor TransactableDefaults {
    @Transacted var title = ""
    @Transacted var pages: [String] = []
    private var context: TransactionContext?
    var transactionContext: TransactionContext { context! }
    init() { context = TransactionContext.createRoot(owner: self) }
    func onValidateCommit() throws { if title.isEmpty { throw TestError(number: 1) } }
}

@MainActor @Suite(.inTurn, .watched(testLimit), .leavesNothing) struct IsolationTests {
    @Test(.promises("X15")) func `X15: a class of an actor conforms, and its tree lives there`() async throws
    {
        let document = Document()
        #expect(thrown { try document.transaction { document.pages = ["a"] } } is TestError)
        try document.transaction { (document.title, document.pages) = ("title", ["b"]) }
        try await document.withTransaction {
            await Task.yield()
            document.pages.append("c")
        }
        #expect(document.pages == ["b", "c"])
    }

    @Test(.promises("X14")) func `X14: a view of a tree of the main actor is read from elsewhere`()
        async throws
    {
        let document = Document()
        let view = CommittedView(of: document) { [unowned document] in document.pages.count }
        try document.transaction { (document.title, document.pages) = ("title", ["b"]) }
        let count = await Task.detached { view.value }.value
        #expect(count == 1)
    }
}
