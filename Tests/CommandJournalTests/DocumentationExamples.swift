// The examples of the articles in CommandJournal.docc, each as a test: so that it compiles, and does what the article says.
// Scripts/documentation looks for every block of Swift in an article here.

import CommandJournal
import Commands
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

/// A receiver that looks at keys.
private final class Bank: Sendable {
    static let shared = Bank()
    private let state = Locked<(balances: [String: Int], keys: [String: Int])>(([:], [:]))

    func balance(_ account: String) -> Int { state.withLock { $0.balances[account] ?? 0 } }
    func change(_ account: String, by amount: Int, key: String) throws -> Int {
        state.withLock { state in
            if let known = state.keys[key] { return known }
            state.balances[account, default: 0] += amount
            state.keys[key] = state.balances[account]!
            return state.balances[account]!
        }
    }
    func forget() { state.withLock { $0 = ([:], [:]) } }
}

private struct Deposit: JournaledCommand {
    static let journalName = "deposit"
    let account: String
    let amount: Int
    let order: String
    var idempotencyKey: String? { "deposit \(order)" }
    func perform(_ context: CommandContext) async throws -> Performed<Int, Nothing> {
        Performed(try Bank.shared.change(account, by: amount, key: "deposit \(order)"), undo: Nothing())
    }
    func undo(_ undo: Nothing, _ context: CommandContext) async throws {
        _ = try Bank.shared.change(account, by: -amount, key: "undo deposit \(order)")
    }
}

private struct Withdraw: JournaledCommand {
    static let journalName = "withdraw"
    let account: String
    let amount: Int
    let order: String

    var idempotencyKey: String? { "withdraw \(order)" }

    func perform(_ context: CommandContext) async throws -> Performed<Int, Nothing> {
        Performed(try Bank.shared.change(account, by: -amount, key: "withdraw \(order)"), undo: Nothing())
    }

    func undo(_ undo: Nothing, _ context: CommandContext) async throws {
        _ = try Bank.shared.change(account, by: amount, key: "undo withdraw \(order)")
    }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing)
struct DocumentationExamples {
    @Test func `CommandJournal: a journal, an invoker, a replay`() async throws {
        let folder = try Folder()
        let path = folder.file()
        let invoker = SerialInvoker()
        let journal = try await CommandJournal(path: path, types: [Deposit.self, Withdraw.self])
        let report = try await journal.recover()  // what an earlier process left
        for doubt in report.inDoubt { print("Look after \(doubt.type), record \(doubt.sequence).") }

        let balance = try await journal.execute(Deposit(account: "mine", amount: 10, order: "17"))
        try await journal.execute(allOrNothing: [
            Withdraw(account: "mine", amount: 3, order: "18"),
            Deposit(account: "yours", amount: 3, order: "18"),
        ])
        // end of the example
        #expect(balance == 10 && report.runs.isEmpty && Bank.shared.balance("mine") == 7)
        let command = Deposit(account: "mine", amount: 1, order: "19")
        let handle = invoker.submit(ClosureCommand { context in try await journal.execute(command, context) })
        // end of the example
        #expect(try await handle.value == 8)
        Bank.shared.forget()
        let replayed = try await journal.replay()
        // end of the example
        #expect(replayed.count == 4)
        #expect(Bank.shared.balance("mine") == 8 && Bank.shared.balance("yours") == 3)
        await journal.close()
    }

    @Test func `ExactlyOnce: deciding`() async throws {
        func hasHappened(_ doubt: CommandJournal.InDoubt) async -> Bool { false }
        let runs = Locked(0)
        let store = MemoryStore()
        let call = Call { _ in runs.withLock { $0 += 1 } }
        _ = try await CommandJournalTests.journal(store).execute(call)
        let journal = try await journal(MemoryStore(Array(store.records.prefix(3))))
        let report = try await journal.recover(.compensate) { doubt in
            await hasHappened(doubt) ? .leave : .again
        }
        // end of the example
        #expect(report.runs.map(\.outcome) == [.finished] && runs.withLock { $0 } == 2)
    }
}
