// The closures, each under both of its names.

import CompositeOperationsTestSupport
import PropertyTestingSupport
import Testing
import Transactions

@Suite(.leavesNothing) struct TransactionClosureTests {
    @Test(.promises("X5")) func `returns the value of its body`() throws {
        let chart = PieChart()
        let sum: Int = try chart.transaction {
            chart.addElement(label: "a", percentage: 100)
            return chart.elements.count
        }
        #expect(sum == 1)
    }

    @Test func `needs no use of its value`() throws {
        let chart = PieChart()
        try chart.transaction { 42 }
        #expect(chart.calls == ["begin", "validate", "commit"])
    }

    @Test func `takes its closure in parentheses`() throws {
        let chart = PieChart()
        try chart.transaction({
            chart.addElement(label: "a", percentage: 50)
            chart.addElement(label: "b", percentage: 50)
        })
        #expect(chart.elements.count == 2)
    }

    @Test(.promises("Q15")) func `works with an implicit self`() throws {
        let chart = PieChart()
        try chart.fill([50, 50])
        #expect(chart.elements.count == 2)
    }

    @Test func `rolls back when a validation fails, and throws its error`() throws {
        let chart = PieChart()
        #expect(throws: PieChartError.totalPercentageIsNot100) { try chart.fill([60, 50]) }
        #expect(chart.elements.isEmpty)
        #expect(!chart.transactionIsActive)
        #expect(chart.calls == ["begin", "validate", "rollback"])
    }

    @Test func `rolls back without a validation when its body throws`() throws {
        let chart = PieChart()
        #expect(throws: PieChartError.elementIsNotPositive) {
            try chart.transaction {
                chart.addElement(label: "a", percentage: 100)
                throw PieChartError.elementIsNotPositive
            }
        }
        #expect(chart.elements.isEmpty)
        #expect(chart.calls == ["begin", "rollback"])
    }

    @Test func `throws errors that cast to their own type`() throws {
        let chart = PieChart()
        do {
            try chart.fill([200])
            Issue.record("it was committed")
        } catch {
            #expect(error as? TransactionError == nil)
            #expect(error as? PieChartError != nil)
        }
    }

    @Test func `joins inside itself`() throws {
        let chart = PieChart()
        try chart.transaction {
            try chart.transaction { chart.addElement(label: "a", percentage: 60) }
            try chart.transaction { chart.addElement(label: "b", percentage: 40) }
        }
        #expect(chart.calls == ["begin", "validate", "commit"])
        #expect(chart.elements.count == 2)
    }

    @Test func `joins from a child`() throws {
        let chart = PieChart()
        try chart.fill([50, 50])
        let first = chart.elements["0"]!, second = chart.elements["1"]!
        try first.transaction {
            first.percentage = 30
            try second.transaction { second.percentage = 70 }
        }
        #expect(first.percentage == 30)
        #expect(second.percentage == 70)
    }

    @Test func `keeps joined changes when their error is caught`() throws {
        let chart = PieChart()
        try chart.fill([50, 50])
        let first = chart.elements["0"]!, second = chart.elements["1"]!
        try chart.transaction {
            do {
                try chart.transaction {
                    first.percentage = 1
                    second.percentage = 99
                    throw PieChartError.elementIsNotPositive
                }
            } catch {}
        }
        #expect(first.percentage == 1)
    }

    @Test func `joins a transaction that was begun by hand`() throws {
        let chart = PieChart()
        let transaction = try chart.beginTransaction()
        try chart.transaction { chart.addElement(label: "a", percentage: 100) }
        #expect(chart.transactionIsActive)
        try chart.commitTransaction(transaction)
        #expect(chart.calls == ["begin", "validate", "commit"])
    }

    @Test func `cannot begin a second one`() throws {
        let chart = PieChart()
        try chart.transaction {
            #expect(throws: TransactionError.anotherTransactionIsActive) { try chart.beginTransaction() }
        }
        #expect(chart.calls == ["begin", "validate", "commit"])
    }

    @Test func `keeps the body's error after a rollback by hand`() throws {
        let chart = PieChart()
        #expect(throws: PieChartError.elementIsNotPositive) {
            try chart.transaction {
                try chart.rollbackTransaction()
                throw PieChartError.elementIsNotPositive
            }
        }
        #expect(chart.calls == ["begin", "rollback"])
    }

    @Test func `returns its value after a commit by hand`() throws {
        let chart = PieChart()
        let value: Int = try chart.transaction {
            try chart.commitTransaction()
            return 7
        }
        #expect(value == 7)
        #expect(chart.calls == ["begin", "validate", "commit"])
    }

    @Test func `may be used by an existential`() throws {
        let chart = PieChart()
        let member: Transactable = chart
        try member.transaction { chart.addElement(label: "a", percentage: 100) }
        #expect(chart.elements.count == 1)
    }

    @Test func `validates late members`() throws {
        let chart = PieChart()
        #expect(throws: PieChartError.elementIsNotPositive) { try chart.fill([-20, 120]) }
        #expect(chart.elements.isEmpty)
    }
}

@Suite(.leavesNothing) struct DoTransactionallyTests {
    @Test(.promises("X5")) func `returns the value of its body`() throws {
        let chart = PieChart()
        let sum: Int = try chart.doTransactionally {
            chart.addElement(label: "a", percentage: 100)
            return chart.elements.count
        }
        #expect(sum == 1)
    }

    @Test func `needs no use of its value`() throws {
        let chart = PieChart()
        try chart.doTransactionally { 42 }
        #expect(chart.calls == ["begin", "validate", "commit"])
    }

    @Test func `takes its closure in parentheses`() throws {
        let chart = PieChart()
        try chart.doTransactionally({
            chart.addElement(label: "a", percentage: 50)
            chart.addElement(label: "b", percentage: 50)
        })
        #expect(chart.elements.count == 2)
    }

    @Test(.promises("Q15")) func `works with an implicit self`() throws {
        let chart = PieChart()
        try chart.fillByOldName([50, 50])
        #expect(chart.elements.count == 2)
    }

    @Test func `rolls back when a validation fails, and throws its error`() throws {
        let chart = PieChart()
        #expect(throws: PieChartError.totalPercentageIsNot100) { try chart.fillByOldName([60, 50]) }
        #expect(chart.elements.isEmpty)
        #expect(!chart.transactionIsActive)
        #expect(chart.calls == ["begin", "validate", "rollback"])
    }

    @Test func `rolls back without a validation when its body throws`() throws {
        let chart = PieChart()
        #expect(throws: PieChartError.elementIsNotPositive) {
            try chart.doTransactionally {
                chart.addElement(label: "a", percentage: 100)
                throw PieChartError.elementIsNotPositive
            }
        }
        #expect(chart.elements.isEmpty)
        #expect(chart.calls == ["begin", "rollback"])
    }

    @Test func `throws errors that cast to their own type`() throws {
        let chart = PieChart()
        do {
            try chart.fillByOldName([200])
            Issue.record("it was committed")
        } catch {
            #expect(error as? TransactionError == nil)
            #expect(error as? PieChartError != nil)
        }
    }

    @Test func `joins inside itself`() throws {
        let chart = PieChart()
        try chart.doTransactionally {
            try chart.doTransactionally { chart.addElement(label: "a", percentage: 60) }
            try chart.doTransactionally { chart.addElement(label: "b", percentage: 40) }
        }
        #expect(chart.calls == ["begin", "validate", "commit"])
        #expect(chart.elements.count == 2)
    }

    @Test func `joins from a child`() throws {
        let chart = PieChart()
        try chart.fillByOldName([50, 50])
        let first = chart.elements["0"]!, second = chart.elements["1"]!
        try first.doTransactionally {
            first.percentage = 30
            try second.doTransactionally { second.percentage = 70 }
        }
        #expect(first.percentage == 30)
        #expect(second.percentage == 70)
    }

    @Test func `keeps joined changes when their error is caught`() throws {
        let chart = PieChart()
        try chart.fillByOldName([50, 50])
        let first = chart.elements["0"]!, second = chart.elements["1"]!
        try chart.doTransactionally {
            do {
                try chart.doTransactionally {
                    first.percentage = 1
                    second.percentage = 99
                    throw PieChartError.elementIsNotPositive
                }
            } catch {}
        }
        #expect(first.percentage == 1)
    }

    @Test func `joins a transaction that was begun by hand`() throws {
        let chart = PieChart()
        let transaction = try chart.beginTransaction()
        try chart.doTransactionally { chart.addElement(label: "a", percentage: 100) }
        #expect(chart.transactionIsActive)
        try chart.commitTransaction(transaction)
        #expect(chart.calls == ["begin", "validate", "commit"])
    }

    @Test func `cannot begin a second one`() throws {
        let chart = PieChart()
        try chart.doTransactionally {
            #expect(throws: TransactionError.anotherTransactionIsActive) { try chart.beginTransaction() }
        }
        #expect(chart.calls == ["begin", "validate", "commit"])
    }

    @Test func `keeps the body's error after a rollback by hand`() throws {
        let chart = PieChart()
        #expect(throws: PieChartError.elementIsNotPositive) {
            try chart.doTransactionally {
                try chart.rollbackTransaction()
                throw PieChartError.elementIsNotPositive
            }
        }
        #expect(chart.calls == ["begin", "rollback"])
    }

    @Test func `returns its value after a commit by hand`() throws {
        let chart = PieChart()
        let value: Int = try chart.doTransactionally {
            try chart.commitTransaction()
            return 7
        }
        #expect(value == 7)
        #expect(chart.calls == ["begin", "validate", "commit"])
    }

    @Test(.promises("Q15")) func `may be used by an existential`() throws {
        let chart = PieChart()
        let member: Transactable = chart
        try member.doTransactionally { chart.addElement(label: "a", percentage: 100) }
        #expect(chart.elements.count == 1)
    }

    @Test func `validates late members`() throws {
        let chart = PieChart()
        #expect(throws: PieChartError.elementIsNotPositive) { try chart.fillByOldName([-20, 120]) }
        #expect(chart.elements.isEmpty)
    }
}
