// ExploredActionTests.swift - actions in every order of the tasks that trigger, run and cancel them.

import Actions
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(.seconds(120)), .leavesNothing) struct ExploredActionTests {
    /// The number of executions in flight, and its maximum.
    private final class Load: Sendable {
        private let state = Locked((now: 0, most: 0, sum: 0))
        var most: Int { state.withLock { $0.most } }
        var sum: Int { state.withLock { $0.sum } }

        func work() async {
            state.withLock { state in
                state.now += 1
                state.sum += 1
                state.most = max(state.most, state.now)
            }
            await explorationPoint("works")
            state.withLock { $0.now -= 1 }
        }
    }

    private static func action(_ load: Load, _ policy: ActionPolicy, limit: Int = 1) -> Action<Int, Int> {
        Action(policy: policy, limit: limit, on: explorationExecutor!) { input in
            await load.work()
            return input
        }
    }

    @Test(arguments: [1, 2]) func `A1: never more run than the limit, and each waiter has its turn`(
        _ limit: Int
    ) async throws {
        let coverage = await explore(departures: 2) {
            let load = Load()
            let action = Self.action(load, .queue(9), limit: limit)
            await withTaskGroup(of: String.self) { group in
                for input in 0..<3 { group.addTask { await action.trigger(input).outcome.text } }
                let outcomes = await group.reduce(into: Set()) { $0.insert($1) }
                #expect(outcomes == ["finished 0", "finished 1", "finished 2"])
            }
            #expect(load.most <= limit && load.sum == 3)
        }
        let count = try #require(coverage).schedules.reduce(0, +)
        #expect(count > 100)
    }

    @Test func `A1: triggers that find no room are refused, and the others run`() async throws {
        let counts = Locked<Set<Int>>([])
        await explore {
            let load = Load()
            let action = Self.action(load, .reject)
            let finished = await withTaskGroup(of: String.self) { group in
                for input in 0..<2 { group.addTask { await action.trigger(input).outcome.text } }
                return await group.reduce(0) { count, text in
                    #expect(text.hasPrefix("finished") || text == "rejected busy")
                    return count + (text.hasPrefix("finished") ? 1 : 0)
                }
            }
            #expect(load.most == 1 && load.sum == finished)
            counts.withLock { _ = $0.insert(finished) }
        }
        #expect(counts.withLock { $0 } == [1, 2])
    }

    @Test func `A24: a cancelled trigger has one outcome in any schedule`() async throws {
        let outcomes = Locked<Set<String>>([])
        await explore(departures: 2) {
            let load = Load(), told = Locked(0)
            let action = Self.action(load, .queue(9))
            let events = action.observeEvents { event in
                if ["finished", "cancelled"].contains(event.text) { told.withLock { $0 += 1 } }
            }
            let first = action.trigger(1), second = action.trigger(2)
            async let cancelling: Void = { _ = second.cancel() }()
            let outcome = await second.outcome.text
            await cancelling
            #expect(await first.outcome.text == "finished 1")
            #expect(told.withLock { $0 } == 2)
            outcomes.withLock { _ = $0.insert(outcome) }
            withExtendedLifetime(events) {}
        }
        #expect(outcomes.withLock { $0.count } > 1, "\(outcomes.withLock { $0 })")
    }
}
