// A model as in programs written in Swift 4 or 5: hooks, backups made by hand, an optional context.

import Transactions

enum PieChartError: Error {
    case elementIsNotPositive
    case elementIsGreaterThan100
    case totalPercentageIsNot100
}

class PieChart: Transactable {
    private(set) var elements: [String: PieChartElement] = [:]
    private var elementsBackup: [String: PieChartElement] = [:]
    var calls: [String] = []
    var lastBegun: Transaction?
    var lastEnded: Transaction?

    var transactionContext: TransactionContext { return _transactionContext! }
    private var _transactionContext: TransactionContext?

    init() {
        _transactionContext = TransactionContext.createRoot(owner: self)
    }

    func addElement(label: String, percentage: Int) {
        elements[label] = PieChartElement(chart: self, label: label, percentage: percentage)
    }

    // Trailing closures and an implicit self, as the original allows.
    func fill(_ percentages: [Int]) throws {
        try transaction {
            for (index, percentage) in percentages.enumerated() {
                addElement(label: "\(index)", percentage: percentage)
            }
        }
    }

    func fillByOldName(_ percentages: [Int]) throws {
        try doTransactionally {
            for (index, percentage) in percentages.enumerated() {
                addElement(label: "\(index)", percentage: percentage)
            }
        }
    }

    // This hook does not throw, though the requirement may.
    func onBegin(transaction: Transaction) {
        calls.append("begin")
        lastBegun = transaction
    }

    func onValidateCommit() throws {
        calls.append("validate")
        guard elements.count == 0 || elements.values.reduce(0, { $0 + $1.percentage }) == 100 else {
            throw PieChartError.totalPercentageIsNot100
        }
    }

    func onCommit(transaction: Transaction) {
        calls.append("commit")
        lastEnded = transaction
        elementsBackup = elements
    }

    func onRollback(transaction: Transaction) {
        calls.append("rollback")
        lastEnded = transaction
        elements = elementsBackup
    }
}

class PieChartElement: Transactable {
    let label: String

    var percentage: Int {
        get { return _percentage }
        set {
            assert(transactionIsActive)
            _percentage = newValue
        }
    }
    private var _percentage: Int
    private var _percentageBackup: Int

    var transactionContext: TransactionContext { return _transactionContext! }
    private var _transactionContext: TransactionContext?

    init(chart: PieChart, label: String, percentage: Int) {
        self.label = label
        self._percentage = percentage
        self._percentageBackup = percentage
        _transactionContext = TransactionContext.createNode(owner: self, parent: chart)
    }

    func onBegin(transaction: Transaction) {}

    func onValidateCommit() throws {
        guard _percentage > 0 else { throw PieChartError.elementIsNotPositive }
        guard _percentage <= 100 else { throw PieChartError.elementIsGreaterThan100 }
    }

    func onCommit(transaction: Transaction) { _percentageBackup = _percentage }

    func onRollback(transaction: Transaction) { _percentage = _percentageBackup }
}
