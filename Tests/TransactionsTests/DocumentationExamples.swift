// The examples of the articles in Transactions.docc: Scripts/documentation looks for every block of Swift in an article
// here. To change one is to change the other.

import CompositeOperationsTestSupport
import PropertyTestingSupport
import Testing
import Transactions

private enum OrderError: Error { case tooExpensive }

private func askForPrice() async -> Int { 3 }

// Transactions.md
final class Order: LoggedTransactable, TransactableDefaults {
    @Transacted var budget = 0
    @Transacted private(set) var items: [Item] = []
    private var context: TransactionContext?
    var transactionContext: TransactionContext { context! }

    init() { context = TransactionContext.createRoot(owner: self) }

    func add(_ name: String, price: Int) { items.append(Item(name, price: price, in: self)) }
    func removeFirst() -> Item { items.removeFirst() }

    func onValidateCommit() throws {
        guard items.reduce(0, { $0 + $1.price }) <= budget else { throw OrderError.tooExpensive }
    }
}
// end of the example

// Members.md
final class Item: LoggedTransactable, TransactableDefaults {
    @Transacted private(set) var price: Int
    let name: String
    private var context: TransactionContext?
    var transactionContext: TransactionContext { context! }

    init(_ name: String, price: Int, in order: Order) {
        self.name = name
        self.price = price
        TransactionContext.createNode(owner: self, parent: order) { context = $0 }
    }
}
// end of the example

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct DocumentationExamples {
    @Test func `overview`() throws {
        let order = Order()
        try order.transaction {
            order.add("tea", price: 3)
            order.add("cake", price: 4)
            order.budget = 10
        }
        #expect(order.items.map(\.name) == ["tea", "cake"])
        #expect(throws: OrderError.tooExpensive) { try order.transaction { order.budget = 6 } }
        #expect(order.budget == 10)
        // Members.md
        try order.transaction {
            try order.removeFirst().transactionContext.leave()
        }
        try order.$budget.set(40)
        // end of the example
        #expect(order.items.map(\.name) == ["cake"] && order.budget == 40)
    }

    @Test func `savepoints and transactions by hand`() throws {
        let order = Order()
        // Transacting.md
        try order.transaction {
            order.budget = 100
            try? order.transaction(nesting: .savepoint) {
                order.budget = 50
                throw OrderError.tooExpensive
            }
        }
        // end of the example
        #expect(order.budget == 100)
        try order.transaction { order.add("coffee", price: 15) }
        // Transacting.md
        let transaction = try order.beginTransaction()
        order.budget = 1
        do {
            try order.commitTransaction(transaction)
        } catch {
            order.budget = 20
            try order.commitTransaction(transaction)
        }
        // end of the example
        #expect(order.budget == 20)
    }

    @Test func `several trees, and undo`() throws {
        let order = Order()
        let other = Order()
        try order.$budget.set(10)
        // Transacting.md
        try jointTransaction(over: [order, other]) {
            order.budget -= 5
            other.budget += 5
        }
        // end of the example
        #expect(order.budget == 5 && other.budget == 5)
        // Transacting.md
        var steps: [TransactionUndoStep] = []
        let subscription = order.transactionContext.didCommit { changes in
            if let step = changes.undoStep() { steps.append(step) }
        }
        try order.transaction { order.budget = 30 }
        subscription.cancel()
        try steps[0].undo()
        // end of the example
        #expect(order.budget == 5)
    }

    @Test func `waiting and reading`() async throws {
        let order = Order()
        // Waiting.md
        try await order.withTransaction {
            let price = await askForPrice()
            order.add("tea", price: price)
            order.budget = price
        }
        try await order.withTransaction(waiting: .atMost(.seconds(1))) {
            order.budget += 1
        }
        // end of the example
        #expect(order.budget == 4)
        // Waiting.md
        let budget = CommittedView(of: order) { [unowned order] in order.budget }
        try order.transaction { order.budget = 70 }
        // end of the example
        #expect(budget.value == 70)
    }
}
