// The examples of the articles in Commands.docc, each as a test: so that it compiles, and does what the article says.
// Scripts/documentation looks for every block of Swift in an article here.

import Commands
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

private func fetch(_ name: String) async throws -> String { "text of \(name)" }

private struct Overdrawn: Error {}

private final class Account: Sendable {
    private let amount: Locked<Int>
    init(_ amount: Int) { self.amount = Locked(amount) }
    var balance: Int { amount.withLock { $0 } }
    func add(_ change: Int) throws {
        try amount.withLock { amount in
            if !(0...100).contains(amount + change) { throw Overdrawn() }
            amount += change
        }
    }
}

private struct Replace: UndoableCommand {
    let at: Int
    let text: Locked<[Int]>
    init(at place: Int, in text: Locked<[Int]>) {
        at = place
        self.text = text
    }
    func perform(_ context: CommandContext) async throws -> Performed<Void, Int> {
        text.withLock { text in
            defer { text[at] = 0 }
            return Performed(undo: text[at])
        }
    }
    func undo(_ undo: Int, _ context: CommandContext) async throws { text.withLock { $0[at] = undo } }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing)
struct DocumentationExamples {
    @Test(.promises("B6", "C14")) func `Commands: submitting`() async throws {
        let invoker = SerialInvoker()
        let handle = invoker.submit(ClosureCommand { try await fetch("news") })
        let news = try await handle.value
        // end of the example
        #expect(news == "text of news")
    }

    @Test func `AllOrNothing: a transfer`() async throws {
        let (from, to) = (Account(60), Account(80))
        let reports = Log<TransactionFailure.Rollback>()
        func report(_ cause: any Error, _ rollback: TransactionFailure.Rollback) {
            #expect(cause is Overdrawn)
            reports.add(rollback)
        }
        let transfer = TransactionCommand(commands: [
            UndoableClosure { _ in
                try from.add(-50)
            } undo: { _ in
                try from.add(50)
            },
            UndoableClosure { _ in
                try to.add(50)
            } undo: { _ in
                try to.add(-50)
            },
        ])
        do { try await transfer.execute() } catch let failure as TransactionFailure {
            report(failure.cause, failure.rollback)
        }
        // end of the example
        #expect(reports.entries == [.complete])
        #expect(from.balance == 60 && to.balance == 80)
    }

    @Test func `UndoAndRedo: a group`() async throws {
        let text = Locked([1, 2, 3])
        let places = [0, 2]
        let stack = UndoStack(limit: 100)
        try await stack.group("Replace All") {
            for place in places { try await stack.perform(Replace(at: place, in: text)) }
        }
        try await stack.undo()
        // end of the example
        #expect(text.withLock { $0 } == [1, 2, 3])
        #expect(stack.redoName == "Replace All")
    }
}
