// The model with backups that its members keep themselves: each field has a backup field, and two hooks have to
// name both.

import Transactions

enum PieChartError: Error {
    case elementIsNotPositive
    case elementIsGreaterThan100
    case totalPercentageIsNot100
}

final class PieChart: Transactable {
    private(set) var elements: [String: PieChartElement] = [:]
    private var elementsBackup: [String: PieChartElement] = [:]
    private var context: TransactionContext?
    var transactionContext: TransactionContext { context! }

    init() { context = TransactionContext.createRoot(owner: self) }

    func addElement(label: String, percentage: Int) {
        elements[label] = PieChartElement(chart: self, label: label, percentage: percentage)
    }

    /// The backup keeps a removed element alive, so the element has to leave the chart: otherwise it would be
    /// validated.
    func removeElement(label: String) throws {
        try elements.removeValue(forKey: label)?.transactionContext.leave()
    }

    /// The backup is always up to date: each end of a transaction updates it.
    func onBegin(transaction: Transaction) {}

    func onValidateCommit() throws {
        guard elements.isEmpty || elements.values.reduce(0, { $0 + $1.percentage }) == 100 else {
            throw PieChartError.totalPercentageIsNot100
        }
    }

    func onCommit(transaction: Transaction) { elementsBackup = elements }

    func onRollback(transaction: Transaction) { elements = elementsBackup }
}

final class PieChartElement: Transactable {
    let label: String

    var percentage: Int {
        get { current }
        set {
            assert(transactionIsActive)
            current = newValue
        }
    }
    private var current: Int
    private var backup: Int
    private var context: TransactionContext?
    var transactionContext: TransactionContext { context! }

    init(chart: PieChart, label: String, percentage: Int) {
        self.label = label
        current = percentage
        backup = percentage
        context = TransactionContext.createNode(owner: self, parent: chart)
    }

    func onBegin(transaction: Transaction) {}

    func onValidateCommit() throws {
        guard current > 0 else { throw PieChartError.elementIsNotPositive }
        guard current <= 100 else { throw PieChartError.elementIsGreaterThan100 }
    }

    func onCommit(transaction: Transaction) { backup = current }

    func onRollback(transaction: Transaction) { current = backup }
}
