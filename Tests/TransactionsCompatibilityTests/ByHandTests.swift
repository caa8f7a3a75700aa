// Transactions that are begun and ended by hand, by programs in the language mode of Swift 5.

import CompositeOperationsTestSupport
import PropertyTestingSupport
import Testing
import Transactions

@Suite(.leavesNothing) struct ByHandTests {
    let chart = PieChart()

    @Test func `begin, commit`() throws {
        let transaction = try chart.beginTransaction()
        #expect(chart.transactionIsActive)
        #expect(chart.activeTransaction == transaction)
        chart.addElement(label: "a", percentage: 100)
        try chart.commitTransaction(transaction)
        #expect(!chart.transactionIsActive)
        #expect(chart.activeTransaction == nil)
        #expect(chart.elements.count == 1)
    }

    @Test func `begin, rollback`() throws {
        let transaction = try chart.beginTransaction()
        chart.addElement(label: "a", percentage: 100)
        try chart.rollbackTransaction(transaction)
        #expect(chart.elements.isEmpty)
        #expect(chart.calls == ["begin", "rollback"])
    }

    @Test func `begin needs no use of its descriptor`() throws {
        try chart.beginTransaction()
        try chart.commitTransaction()
        #expect(chart.calls == ["begin", "validate", "commit"])
    }

    @Test func `the wildcard ends any active one`() throws {
        try chart.beginTransaction()
        try chart.commitTransaction(.any)
        try chart.beginTransaction()
        try chart.rollbackTransaction(Transaction.any)
        #expect(chart.calls == ["begin", "validate", "commit", "begin", "rollback"])
    }

    @Test(.promises("Q15")) func `hooks get the descriptor`() throws {
        let transaction = try chart.beginTransaction()
        #expect(chart.lastBegun == transaction)
        try chart.commitTransaction()
        #expect(chart.lastEnded == transaction)
    }

    @Test func `another descriptor is refused`() throws {
        let first = try chart.beginTransaction()
        try chart.rollbackTransaction()
        let second = try chart.beginTransaction()
        #expect(first != second)
        #expect(throws: TransactionError.wrongTransactionDescriptor) { try chart.commitTransaction(first) }
        #expect(throws: TransactionError.wrongTransactionDescriptor) { try chart.rollbackTransaction(first) }
        #expect(chart.activeTransaction == second)
        try chart.commitTransaction(second)
    }

    @Test func `without a transaction there is nothing to end`() {
        #expect(throws: TransactionError.transactionIsNotActive) { try chart.commitTransaction() }
        #expect(throws: TransactionError.transactionIsNotActive) { try chart.rollbackTransaction() }
        #expect(chart.calls.isEmpty)
    }

    @Test(.promises("Q15")) func `a failed commit leaves the transaction active`() throws {
        try chart.beginTransaction()
        chart.addElement(label: "a", percentage: 60)
        #expect(throws: PieChartError.totalPercentageIsNot100) { try chart.commitTransaction() }
        #expect(chart.transactionIsActive)
        chart.addElement(label: "b", percentage: 40)
        try chart.commitTransaction()
        #expect(chart.elements.count == 2)
    }

    @Test func `a child acts on the root`() throws {
        try chart.fill([50, 50])
        let element = chart.elements["0"]!
        let transaction = try element.beginTransaction()
        #expect(chart.activeTransaction == transaction)
        #expect(element.transactionIsActive)
        try chart.rollbackTransaction(transaction)
        #expect(!element.transactionIsActive)
    }

    @Test func `a context has the same calls`() throws {
        let context = chart.transactionContext
        let transaction = try context.beginTransaction()
        #expect(context.transactionIsActive)
        #expect(context.activeTransaction == transaction)
        try context.commitTransaction(transaction)
        try context.beginTransaction()
        try context.rollbackTransaction()
        #expect(!context.transactionIsActive)
    }

    @Test(.promises("Q15")) func `a switch over the errors needs no default`() {
        func name(_ error: TransactionError) -> String {
            switch error {
            case .anotherTransactionIsActive: return "active"
            case .transactionIsNotActive: return "idle"
            case .wrongTransactionDescriptor: return "wrong"
            }
        }
        #expect(name(.transactionIsNotActive) == "idle")
    }

    @Test func `an identifier stays with its descriptor`() throws {
        let transaction = try chart.beginTransaction()
        #expect(transaction.id == chart.activeTransaction?.id)
        #expect(transaction.id != Transaction.any.id)
        try chart.rollbackTransaction()
    }

    @Test func `elements that change roll back`() throws {
        try chart.fill([50, 50])
        let first = chart.elements["0"]!
        do {
            try chart.transaction {
                first.percentage = 120
                chart.elements["1"]!.percentage = -20
            }
            Issue.record("it was committed")
        } catch PieChartError.elementIsGreaterThan100 {
            #expect(first.percentage == 50)
        }
    }
}
