// UnseenRunTests - a command that failed in an invoker, and at which nobody has looked, is told when its run goes.

import Commands
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct UnseenRunTests {
    enum Look: CaseIterable, Codable {
        case result, outcome, value, wait, observerBefore, observerAfter, delegate, group, groupAfter
    }

    @Test(arguments: Look.allCases, [false, true])
    func `a failure that somebody looks at is not told, and any other is`(look: Look, isAsynchronous: Bool)
        async
    {
        await #expect(processExitsWith: .success) { [look, isAsynchronous] in
            let told = Log<String>()
            Diagnostics.onReport { told.add($0.message) }
            func fail(_ look: Look?) async throws -> String {
                let invoker = SerialInvoker()
                let listener = look == .delegate ? Listener() : nil
                let command = TransactionCommand(
                    Failing(isAsynchronous: isAsynchronous), delegate: listener)
                let group = look == .group || look == .groupAfter ? TransactionGroup() : nil
                if look == .group { group?.add(command) }
                let before = look == .observerBefore ? command.handle.onOutcome { _ in } : nil
                let handle = invoker.submit(command)
                try await invoker.flush()
                switch look {
                case .result: try #require(handle.result?.isFailed == true)
                case .outcome: try #require(await handle.outcome.isFailed)
                case .value: _ = try? await handle.value
                case .wait: try #require(await wait(for: handle)?.isFailed == true)
                case .observerAfter: withExtendedLifetime(handle.onOutcome { _ in }) {}
                case .groupAfter: group?.add(command)
                case .observerBefore, .delegate, .group, nil: break
                }
                withExtendedLifetime((listener, before, group)) {}
                return "command \(handle.transaction.debugDescription.split(separator: " ")[1])"
            }
            let seen = try await fail(look)
            let unseen = try await fail(nil)
            try #require(
                await eventually {
                    told.entries.contains("\(unseen) failed, and nobody looked: \(TestError(number: 3))")
                })
            // After this, what was to be told before has been.
            try await Scheduler.shared.forEach(0..<1_000) { _ in }
            try #require(!told.entries.contains { $0.hasPrefix("\(seen) ") })
            try #require(told.entries.count == 1)
        }
    }

    @Test func `what throws to its caller, finishes, or is cancelled is not told; a detached one is`() async {
        await #expect(processExitsWith: .success) {
            let told = Log<String>()
            Diagnostics.onReport { told.add($0.message) }
            for isAsynchronous in [false, true] {
                let command = TransactionCommand(Failing(isAsynchronous: isAsynchronous))
                await #expect(throws: TestError(number: 3)) { try await command.execute() }
            }
            let invoker = SerialInvoker()
            invoker.submit(ClosureCommand {})
            invoker.submit(ClosureCommand { throw CancellationError() })
            try await invoker.flush()
            try await Scheduler.shared.forEach(0..<1_000) { _ in }
            try #require(told.entries.isEmpty)
            let listener = Listener()
            let detached = TransactionCommand(Failing(isAsynchronous: false), delegate: listener)
            detached.handle.detach()
            invoker.submit(detached)
            invoker.addCommand(command: Failing(isAsynchronous: true))
            try await invoker.flush()
            try #require(await eventually { told.entries.count == 1 })
            _ = consume detached
            try #require(await eventually { told.entries.count == 2 })
            withExtendedLifetime(listener) {}
        }
    }
}

private struct Failing: Command {
    let isAsynchronous: Bool

    func execute(_ context: CommandContext) async throws {
        if isAsynchronous { await Task.yield() }
        throw TestError(number: 3)
    }
}
