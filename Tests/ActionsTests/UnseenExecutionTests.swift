// UnseenExecutionTests - a failed execution whose error was never read is reported when it is deallocated.

import Actions
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

@MainActor private final class Silent: Binding {
    var onTrigger: (@MainActor (Int) -> Void)?
    func setEnabled(_ isEnabled: Bool) {}
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct UnseenExecutionTests {
    enum Look: CaseIterable, Codable { case result, outcome, value, events, failures }
    enum Way: CaseIterable, Codable { case inline, watched, task }

    @Test(arguments: Look.allCases, Way.allCases)
    func `an observed failure is not reported, and any other is`(look: Look, way: Way) async {
        await #expect(processExitsWith: .success) { [look, way] in
            let told = ToldFailures()
            func fail(_ look: Look?) async throws -> String {
                let work: @Sendable (Int) throws -> Void = { throw TestError(number: $0) }
                let action =
                    way == .task
                    ? Action<Int, Void>("failing", work: work)
                    : Action<Int, Void>("failing", when: .always, inline: { input, _ in try work(input) })
                // Snapshot observers are not notified of failures.
                let snapshots = way == .watched ? action.observeSnapshots { _ in } : nil
                let events = look == .events ? action.observeEvents { _ in } : nil
                let failures = look == .failures ? action.facade.observeFailures(on: .inline) { _ in } : nil
                let execution = action.trigger(3)
                try #require(await eventually { action.snapshot.running == 0 })
                switch look {
                case .result: try #require(await eventually { execution.result?.isFailed == true })
                case .outcome: try #require(await execution.outcome.isFailed)
                case .value: _ = try? await execution.value
                case .events, .failures, nil: break
                }
                try #require(!execution.cancel())
                withExtendedLifetime((snapshots, events, failures)) {}
                return "execution \(execution.id) of \(action.id)"
            }
            _ = try await fail(look)
            let unseen = try await fail(nil)
            try #require(try await told.areOf([unseen], TestError(number: 3)))
        }
    }

    @Test func `work that throws to its caller, or does not fail, is not reported`() async {
        await #expect(processExitsWith: .success) {
            let told = ToldFailures()
            let flag = LiveValue(true)
            let action = Action<Int, Void>(
                "several", when: Precondition(flag),
                inline: { input, _ in
                    if input == 0 { throw CancellationError() }
                    if input < 0 { throw TestError(number: input) }
                })
            await #expect(throws: ActionError.self) { try await action(-1) }
            for input in 0...1 { action.trigger(input) }
            flag.set(false)
            action.trigger(-1)
            try #require(try await told.areOf([], TestError(number: 0)))
        }
    }

    @Test func `an observer added during the work is notified, and may leave then`() async {
        await #expect(processExitsWith: .success) {
            let told = ToldFailures()
            let (heard, during) = (Log(), Locked<(() -> Void)?>(nil))
            let action = Action<Int, Void>(
                "direct", when: .always,
                inline: { input, _ in
                    during.withLock { $0 }?()
                    throw TestError(number: input)
                })
            let subscription = Locked<Subscription?>(nil)
            during.withLock {
                $0 = {
                    let made = action.observeEvents { event in
                        heard.add(event.text)
                        subscription.withLock { $0 }?.cancel()
                    }
                    subscription.withLock { $0 = made }
                }
            }
            action.trigger(1)
            try #require(heard.take().count == 1)
            during.withLock { $0 = nil }
            try #require(try await told.areOf([], TestError(number: 0)))
            let id = action.trigger(2).id  // the observer is gone
            try #require(
                try await told.areOf(["execution \(id) of \(action.id)"], TestError(number: 2)))
        }
    }

    @Test func `a listener is not told of failures it makes itself`() async {
        await #expect(processExitsWith: .success) {
            let told = Count()
            let failing = Action<Int, Void>(
                "failing", when: .always, inline: { input, _ in throw TestError(number: input) })
            Diagnostics.onReport { _ in
                told.add()
                failing.trigger(2)
            }
            failing.trigger(1)
            try #require(await eventually { told.value >= 1 })
            for _ in 0..<10 { try await Scheduler.shared.forEach(0..<1_000) { _ in } }
            try #require(told.value == 1)
        }
    }

    @Test @MainActor func `a binding without failure UI observes none`() async throws {
        await #expect(processExitsWith: .success) { @MainActor in
            let told = ToldFailures()
            let action = Action<Int, Void>("bound", policy: .reject) { (input: Int) in
                throw TestError(number: input)
            }
            let control = Silent()
            var options = BindingOptions()
            options.cancelsOnUnbind = true
            let binding = action.facade.bind(to: control, options: options)
            for number in 1...3 {
                control.onTrigger?(number)
                try #require(await eventually { action.snapshot.running == 0 })
            }
            binding.unbind()
            try #require(await eventually { told.count == 3 })
        }
    }
}
