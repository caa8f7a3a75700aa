// UnseenRunTests - a failed command of an invoker, whose error was never read, is reported when its run is deallocated.

import Commands
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Runs
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct UnseenRunTests {
    enum Look: CaseIterable, Codable {
        case result, outcome, value, wait, observerBefore, observerAfter, delegate, state, again, groupRead,
            intercepted
    }

    @Test(arguments: Look.allCases, [false, true])
    func `an observed failure is not reported, and any other is`(look: Look, isAsynchronous: Bool)
        async
    {
        await #expect(processExitsWith: .success) { [look, isAsynchronous] in
            let told = ToldFailures()
            func fail(_ look: Look?) async throws -> String {
                let invoker = SerialInvoker()
                let listener = look == .delegate ? Listener() : nil
                let failing = Failing(isAsynchronous: isAsynchronous)
                let command =
                    look == .intercepted
                    ? TransactionCommand(failing.intercept(failure: { _ in }))
                    : TransactionCommand(failing, delegate: listener)
                let group = look == .groupRead ? TransactionGroup() : nil
                group?.add(command)
                group?.seal()
                let before = look == .observerBefore ? command.handle.onOutcome { _ in } : nil
                let handle = invoker.submit(command)
                try await invoker.flush()
                switch look {
                case .result: try #require(handle.result?.isFailed == true)
                case .outcome: try #require(await handle.outcome.isFailed)
                case .value: _ = try? await handle.value
                case .wait: try #require(await wait(for: handle)?.isFailed == true)
                case .observerAfter: withExtendedLifetime(handle.onOutcome { _ in }) {}
                case .state: try #require(command.state == .failed)
                case .again: _ = try command.again()
                case .groupRead: try #require(await eventually { group?.handle.result?.isFailed == true })
                case .observerBefore, .delegate, .intercepted, nil: break
                }
                withExtendedLifetime((listener, before, group)) {}
                return name(of: handle.transaction)
            }
            _ = try await fail(look)
            let unseen = try await fail(nil)
            try #require(try await told.areOf([unseen], TestError(number: 3)))
        }
    }

    @Test func `a run that throws to a caller, or does not fail, is not told; a detached one is`() async {
        await #expect(processExitsWith: .success) {
            let told = ToldFailures()
            for isAsynchronous in [false, true] {
                let command = TransactionCommand(Failing(isAsynchronous: isAsynchronous))
                await #expect(throws: TestError(number: 3)) { try await command.execute() }
            }
            let invoker = SerialInvoker()
            invoker.submit(ClosureCommand {})
            invoker.submit(ClosureCommand { throw CancellationError() })
            invoker.submit(TransactionCommand(commands: [Cancelled()]))
            let observed = TransactionOptions(observer: { _ in })
            invoker.submit(
                TransactionCommand(commands: [Cancelled(error: TestError(number: 4))], options: observed))
            try await invoker.flush()
            // Accepted by the invoker, but executed by its caller before its turn.
            let held = Held()
            invoker.submit(held)
            let early = TransactionCommand(Failing(isAsynchronous: false))
            invoker.submit(early)
            await #expect(throws: TestError(number: 3)) { try await early.execute() }
            held.release()
            try await invoker.flush()
            _ = consume early
            try #require(try await told.areOf([], TestError(number: 3)))
            let listener = Listener()
            let detached = TransactionCommand(Failing(isAsynchronous: false), delegate: listener)
            detached.handle.detach()
            invoker.submit(detached)
            invoker.addCommand(command: Failing(isAsynchronous: true))
            try await invoker.flush()
            try #require(await eventually { told.count == 1 })
            _ = consume detached
            try #require(await eventually { told.count == 2 })
            withExtendedLifetime(listener) {}
        }
    }

    @Test func `a group reports its members once`() async {
        await #expect(processExitsWith: .success) {
            let told = ToldFailures()
            func fail(addsLate: Bool) async throws -> String {
                let (invoker, group) = (SerialInvoker(), TransactionGroup())
                let (one, other) = (
                    TransactionCommand(Failing(isAsynchronous: false)), TransactionCommand(ClosureCommand {})
                )
                group.add(other)
                if !addsLate { group.add(one) }
                invoker.submit(one)
                try await invoker.flush()
                if addsLate { group.add(one) }
                group.seal()
                invoker.submit(other)
                try await invoker.flush()
                return name(of: group.transaction)
            }
            let groups = [try await fail(addsLate: false), try await fail(addsLate: true)]
            try #require(try await told.areOf(groups, TestError(number: 3)))
        }
    }

    @Test func `with spans on runs, too, an unobserved failure is reported`() async {
        await #expect(processExitsWith: .success) {
            let told = ToldFailures()
            RunTrace.install(NoTracer())
            let invoker = SerialInvoker()
            var unseen: [String] = []
            for isAsynchronous in [false, true] {
                let failing = Failing(isAsynchronous: isAsynchronous)
                unseen.append(name(of: invoker.submit(failing).transaction))
                let seen = invoker.submit(failing).onOutcome { _ in }
                try await invoker.flush()
                withExtendedLifetime(seen) {}
            }
            try #require(try await told.areOf(unseen, TestError(number: 3)))
        }
    }
}

private func name(of transaction: CommandTransaction) -> String {
    "command \(transaction.debugDescription.split(separator: " ")[1])"
}

private struct Cancelled: UndoableCommand {
    var error: any Error = CancellationError()
    func perform(_ context: CommandContext) async throws -> Performed<Void, Void> { throw error }
    func undo(_ undo: Void, _ context: CommandContext) async throws {}
}

private struct NoTracer: RunTracer {
    func begin(_ kind: RunTrace.Kind, _ name: String, number: UInt64) -> any RunSpan { NoSpan() }
}

private struct NoSpan: RunSpan {
    func bind(_ body: () -> Void) { body() }
    nonisolated(nonsending) func bind<Value>(_ body: nonisolated(nonsending) () async throws -> Value)
        async rethrows -> Value
    { try await body() }
    func end(_ events: [RunTrace.Event], leftOut: Int, _ end: RunTrace.End, _ error: (any Error)?) {}
}

private struct Failing: Command {
    let isAsynchronous: Bool

    func execute(_ context: CommandContext) async throws {
        if isAsynchronous { await Task.yield() }
        throw TestError(number: 3)
    }
}
