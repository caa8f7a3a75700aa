import Commands

/// Shows a spinner from the pull to the end of the refresh that began last.
@MainActor
final class ConversationList: MainActorTransactionCommandDelegate {
    private let queue: SerialInvoker
    private let load: @Sendable () async throws -> Void
    private let show: (String) -> Void
    private var refresh = LatestTransaction()

    init(
        queue: SerialInvoker, load: @escaping @Sendable () async throws -> Void,
        show: @escaping (String) -> Void
    ) {
        self.queue = queue
        self.load = load
        self.show = show
    }

    func pullToRefresh() {
        let command = TransactionCommand(ClosureCommand(load), delegate: self)
        refresh.begin(command.transaction)  // stored before the command can run
        queue.submit(command)
    }

    func commandTransactionDidSucceed(_ transaction: CommandTransaction) { close(transaction, "updated") }

    func commandTransaction(_ transaction: CommandTransaction, didFailWithError error: any Error) {
        close(transaction, "offline")
    }

    private func close(_ transaction: CommandTransaction, _ text: String) {
        show(refresh.finish(transaction) ? "spinner closed: \(text)" : "older refresh ignored")
    }
}
