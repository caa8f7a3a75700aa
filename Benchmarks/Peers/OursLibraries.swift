import Actions
import BenchmarkCore
import Commands
import Transactions

/// The workloads of Commands, Transactions and Actions, as a user would write them.
enum OursLibraries {
    static func form(_ workload: String) -> String? {
        switch workload {
        case "W16-last", "W16-half": "TransactionCommand(commands:), executed."
        case "W21-execute", "W21-undo", "W21-redo", "W21-memory": "UndoStack: perform, undo, redo."
        case "W21-now": "UndoStack: register, undoNow, redoNow."
        case "W21-invoker": "SerialInvoker.submit, with a SynchronousCommand; then flush."
        case "W22-commit", "W22-rollback", "W22-threads":
            "One member, with a TransactionalState for each key."
        case "W22-readers": "A member, and a CommittedView of it, which is renewed by each commit."
        case "W22-members": "A tree of members, each with a @Transacted property."
        case "W23-open", "W23-closed", "W23-contended": "Action; its work runs in the trigger."
        default: nil
        }
    }

    static func run(_ workload: String, n: Int) throws -> Sample {
        switch workload {
        case "W16-last", "W16-half": rollbacks(CommandRollback.self, workload, steps: n)
        case "W21-execute", "W21-undo", "W21-redo": histories(StackHistory.self, workload, changes: n)
        case "W21-memory": historyMemory(StackHistory.self, changes: n)
        case "W21-now": try histories(SynchronousStackHistory.self, changes: n)
        case "W21-invoker": commandsInOrder(InvokerOfCommands.self, count: n)
        case "W22-commit", "W22-rollback": transactions(Sheet.self, workload, keys: n)
        case "W22-members": transactionsOfMembers(Tree.self, members: n)
        case "W22-threads": transactionsOnThreads(Sheet.self, threads: n)
        case "W22-readers": transactionsWithReaders(Pair.self, readers: n)
        case "W23-open", "W23-closed", "W23-contended":
            actionCalls(GuardedAction.self, workload, threads: n)
        default: throw PeerError("The libraries have no workload '\(workload)'.")
        }
    }
}

// MARK: Commands

private struct StepCommand: UndoableCommand {
    let step: LedgerStep

    func perform(_ context: CommandContext) async throws -> Performed<Void, Void> {
        try await step.perform()
        return Performed()
    }

    func undo(_ undo: Void, _ context: CommandContext) async throws { await step.undo() }
}

private enum CommandRollback: RollbackForm {
    static func run(steps: Int, failing: Int, _ ledger: Ledger) async throws {
        let commands = (0..<steps).map { StepCommand(step: LedgerStep(ledger, $0, failing: failing)) }
        try await TransactionCommand(commands: commands).execute()
    }
}

private final class StackHistory: HistoryForm {
    private let stack = UndoStack()

    func execute(_ change: LedgerStep) async throws { try await stack.perform(StepCommand(step: change)) }

    func undo() async throws { try await stack.undo() }

    func redo() async throws { try await stack.redo() }
}

private final class SynchronousStackHistory: SynchronousHistoryForm {
    private let stack = UndoStack()

    func execute(_ change: Int, _ ledger: Ledger) throws {
        ledger.add(change)
        try stack.register {
            ledger.takeBack(change)
        } redo: {
            ledger.add(change)
        }
    }

    func undo() throws { try stack.undoNow() }

    func redo() throws { try stack.redoNow() }
}

private struct LedgerCommand: SynchronousCommand {
    let number: Int
    let ledger: Ledger

    func execute(_ context: CommandContext) { ledger.add(number) }
}

private final class InvokerOfCommands: OrderForm {
    private let invoker = SerialInvoker()

    func submit(_ number: Int, _ ledger: Ledger) {
        invoker.submit(LedgerCommand(number: number, ledger: ledger))
    }

    func flush() async throws { try await invoker.flush() }
}

// MARK: Transactions

private final class Sheet: ModelForm, LoggedTransactable, TransactableDefaults {
    private var cells: [TransactionalState<UInt64>] = []
    private var context: TransactionContext?

    var transactionContext: TransactionContext { context! }

    init(keys: Int) {
        let context = TransactionContext.createRoot(owner: self)
        self.context = context
        cells = (0..<keys).map { TransactionalState(Workload.mark($0), in: context) }
    }

    func transact(_ keys: ModelKeys, _ mark: UInt64, fails: Bool) {
        // An error is part of the workload, or shows in the values.
        try? transaction {
            for turn in 0..<keys.count { cells[keys[turn]].value &+= mark }
            if fails { throw ModelFailure() }
        }
    }

    var values: [UInt64] { cells.map(\.value) }
}

private final class Tree: ModelForm, LoggedTransactable, TransactableDefaults {
    private final class Member: LoggedTransactable, TransactableDefaults {
        @Transacted var value: UInt64
        private var context: TransactionContext?

        var transactionContext: TransactionContext { context! }

        init(_ value: UInt64, below root: Tree) {
            self.value = value
            context = TransactionContext.createNode(owner: self, parent: root)
        }
    }

    private var members: [Member] = []
    private var context: TransactionContext?

    var transactionContext: TransactionContext { context! }

    init(keys: Int) {
        context = TransactionContext.createRoot(owner: self)
        members = (0..<keys).map { Member(Workload.mark($0), below: self) }
    }

    func transact(_ keys: ModelKeys, _ mark: UInt64, fails: Bool) {
        try? transaction {
            for turn in 0..<keys.count { members[keys[turn]].value &+= mark }
            if fails { throw ModelFailure() }
        }
    }

    var values: [UInt64] { members.map(\.value) }
}

private final class Pair: ViewForm, LoggedTransactable, TransactableDefaults {
    @Transacted private var first: UInt64
    @Transacted private var second: UInt64
    private var context: TransactionContext?
    private var view: CommittedView<(UInt64, UInt64)>?

    var transactionContext: TransactionContext { context! }

    init(_ first: UInt64, _ second: UInt64) {
        self.first = first
        self.second = second
        context = TransactionContext.createRoot(owner: self)
        view = CommittedView(of: self) { [unowned self] in (self.first, self.second) }
    }

    func transfer(_ amount: UInt64) {
        try? transaction {
            first &-= amount
            second &+= amount
        }
    }

    var reader: @Sendable () -> (UInt64, UInt64) {
        let view = view!
        return { view.value }
    }
}

// MARK: Actions

private struct GuardedAction: ActionForm {
    private let action: Action<Int, Void>

    init(isEnabled: Bool, _ work: @escaping @Sendable (Int) -> Void) {
        action = Action(when: Precondition(LiveValue(isEnabled))) { index, _ in work(index) }
    }

    func call(_ index: Int) -> Bool {
        if case .cancelled = action.trigger(index).result { false } else { true }
    }
}
