// ExploreTests.swift - exploration in a test: issues, and what they say.

import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(.seconds(60))) struct ExploreTests {
    @Test func `explore records one issue, with its replay`() async {
        let body = Subject.lostWakeup.body(isFaulty: true)
        await withKnownIssue {
            let coverage = await explore(body)
            #expect(coverage == nil)
        } matching: {
            "\($0)".contains("EXPLORE_REPLAY=") && "\($0)".contains("Nothing can go on")
        }
        await withKnownIssue {
            await explore(replay: "x", body)
        } matching: {
            "\($0)".contains("'x' is not a schedule")
        }
    }

    @Test func `an expectation that fails in some order is an issue, once`() async {
        let runs = Locked(0)
        await withKnownIssue {
            await explore {
                runs.withLock { $0 += 1 }
                let order = Locked<[Int]>([])
                async let one: Void = { order.withLock { $0.append(1) } }()
                async let two: Void = { order.withLock { $0.append(2) } }()
                _ = await (one, two)
                #expect(order.withLock { $0 } == [1, 2])
            }
        } matching: {
            "\($0)".contains("ExploreTests.swift") && "\($0)".contains("departure")
        }
        #expect(runs.withLock { $0 } >= 2)
    }

    @Test func `explore reports its runs`() async throws {
        let coverage = try #require(
            await explore(departures: nil, Subject.overselling.body(isFaulty: false)))
        #expect("\(coverage)".hasPrefix("all "), "\(coverage)")
    }
}
