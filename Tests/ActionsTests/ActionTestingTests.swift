// ActionTestingTests.swift - the test kit for clients of actions (A26), used as clients use it; and what a view sees.

import ActionTesting
import Actions
import Commands
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

/// View code, which compiles without naming the action's result type.
@MainActor private struct SearchView {
    let facade: ActionFacade<String>
    let button = FakeControl<String>()
    let binding: ActionBinding

    init(_ facade: ActionFacade<String>) {
        self.facade = facade
        var options = BindingOptions()
        options.presentsFailures = true
        binding = facade.bind(to: button, options: options)
    }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct ActionTestingTests {
    private struct Secret: Sendable { let count: Int }

    @Test(.promises("A9", "A12", "A16", "Z6")) @MainActor
    func `A9: a view sees state, failures and rejections, but no results`() {
        let executor = StepExecutor()
        let search = Action<String, Secret>("search", on: executor) { query in
            if query.isEmpty { throw TestError(number: 0) }
            return Secret(count: query.count)
        }
        let view = SearchView(search.facade)
        let refused = Log()
        let rejections = view.facade.observeRejections { refused.add("\($0)") }
        view.button.press("swift")
        view.button.force("twice")
        executor.runAll()
        view.button.press("")
        executor.runAll()
        #expect(
            view.button.changes == [
                .enabled(true), .executing(false), .enabled(false), .executing(true), .enabled(true),
                .executing(false), .enabled(false), .executing(true), .enabled(true), .executing(false),
                .failure("TestError(number: 0)"),
            ])
        #expect(refused.take() == ["busy"])
        withExtendedLifetime(rejections) {}
    }

    @Test(.promises("A26")) func `A26: the same seed gives the same order, another seed others`() {
        func order(_ seed: UInt64) -> [String] {
            let executor = StepExecutor(seed: seed), log = Log()
            let action = Action<Int, Int>("work", limit: 8, on: executor) { input in
                log.add("\(input)")
                await Task.yield()
                log.add("\(input)")
                return input
            }
            let executions = (0..<8).map { action.trigger($0) }
            executor.runAll()
            #expect(executions.allSatisfy { $0.result != nil })
            return log.entries
        }
        #expect(order(0) == (0..<8).map { "\($0)" } + (0..<8).map { "\($0)" })
        #expect(order(7) == order(7))
        #expect(Set((1...20).map { order($0) }).count > 10)
        #expect(order(3).sorted() == order(0).sorted())
    }

    @Test(.promises("A26")) func `A26: on a manual test clock, work waits as long as it should`() async {
        let clock = ManualClock(), executor = StepExecutor()
        let action = Action<Int, Int>("work", policy: .switchToLatest, on: executor) { input in
            try await clock.sleep(for: .seconds(input))
            return input
        }
        let first = action.trigger(5)
        executor.runAll()
        #expect(clock.sleepers == 1)
        clock.advance(by: .seconds(4))
        executor.runAll()
        #expect(first.result == nil)
        let second = action.trigger(2)
        executor.runAll()
        #expect(first.result?.text == "cancelled")
        #expect(clock.sleepers == 1)
        clock.advance(by: .seconds(2))
        executor.runAll()
        #expect(second.result?.text == "finished 2")
        #expect(clock.now.offset == .seconds(6))
    }

    @Test func `a clock retains nothing of former waiters`() async {
        let clock = ManualClock()
        func sleeper(_ seconds: Int) -> Task<Void, any Error> {
            Task { try await clock.sleep(until: .init(offset: .seconds(seconds)), tolerance: nil) }
        }
        for second in 1...20 {
            let (early, late, awoken) = (sleeper(100 + second), sleeper(200 + second), sleeper(second))
            early.cancel()  // perhaps before it sleeps
            #expect(await eventually { clock.sleepers == 2 && clock.moments == 2 })
            late.cancel()
            clock.advance(by: .seconds(1))
            for cancelled in [early, late] {
                await #expect(throws: CancellationError.self) { try await cancelled.value }
            }
            await #expect(throws: Never.self) { try await awoken.value }
            #expect(clock.sleepers == 0 && clock.moments == 0)
        }
    }

    @Test(.promises("A3", "A19")) func `A3: an action has a name and a number, which errors carry`() async {
        let first = Action<Int, Int>("save") { $0 }, second = Action<Int, Int>("save") { $0 },
            third = Action<Int, Int> { $0 }
        #expect(first.id != second.id && first.id.name == "save")
        #expect("\(first.id)".hasPrefix("'save' #"))
        #expect("\(third.id)".hasPrefix("action #"))
        let blocked = Action<Int, Int>("blocked", when: .any([]), inline: { input, _ in input })
        do { _ = try await blocked(1) } catch {
            guard case .disabled(.precondition, let id) = error else {
                Issue.record("\(error)")
                return
            }
            #expect(id == blocked.id)
        }
    }
}
