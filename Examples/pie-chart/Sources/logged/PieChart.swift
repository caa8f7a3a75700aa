// The model with logged state: a member only has to define its validation.

import Transactions

enum PieChartError: Error {
    case elementIsNotPositive
    case elementIsGreaterThan100
    case totalPercentageIsNot100
}

final class PieChart: LoggedTransactable, TransactableDefaults {
    @Transacted private(set) var elements: [String: PieChartElement] = [:]
    private var context: TransactionContext?
    var transactionContext: TransactionContext { context! }

    init() { context = TransactionContext.createRoot(owner: self) }

    func addElement(label: String, percentage: Int) {
        elements[label] = PieChartElement(chart: self, label: label, percentage: percentage)
    }

    func removeElement(label: String) throws {
        try elements.removeValue(forKey: label)?.transactionContext.leave()
    }

    func onValidateCommit() throws {
        guard elements.isEmpty || elements.values.reduce(0, { $0 + $1.percentage }) == 100 else {
            throw PieChartError.totalPercentageIsNot100
        }
    }
}

final class PieChartElement: LoggedTransactable, TransactableDefaults {
    let label: String
    @Transacted var percentage: Int
    private var context: TransactionContext?
    var transactionContext: TransactionContext { context! }

    init(chart: PieChart, label: String, percentage: Int) {
        self.label = label
        self.percentage = percentage
        TransactionContext.createNode(owner: self, parent: chart) { context = $0 }
    }

    func onValidateCommit() throws {
        guard percentage > 0 else { throw PieChartError.elementIsNotPositive }
        guard percentage <= 100 else { throw PieChartError.elementIsGreaterThan100 }
    }
}
