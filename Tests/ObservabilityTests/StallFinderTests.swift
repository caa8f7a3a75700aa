// StallFinderTests - which sequences of samples make a stall, without a thread and without real time.

import Foundation
@testable import Observability
import PropertyTestingSupport
import Testing

@Suite(.inTurn) struct StallFinderTests {
    private let begin = ContinuousClock.now

    /// A sample of a scheduler with one worker.
    private func seen(
        id: Int = 1, isSuspended: Bool = false, queue: (waiting: Int, submitted: Int) = (0, 0),
        activity: String = "sleeps", executed: Int = 0, waiting: Int = 0
    ) throws -> SchedulerState {
        let text = """
            {"id":\(id),"name":"seen","isSuspended":\(isSuspended),"isClosing":false,
             "queues":[{"priority":"default","waiting":\(queue.waiting),"submitted":\(queue.submitted)}],
             "workers":[{"index":0,"thread":0,"activity":"\(activity)","isReplaced":false,"executed":\(executed),
             "stolen":0,"parked":0,"waiting":\(waiting)}]}
            """
        return try JSONDecoder().decode(SchedulerState.self, from: Data(text.utf8))
    }

    private func finder() -> StallFinder {
        StallFinder(bodyLimit: .seconds(10), waitLimit: .seconds(10), readsStacks: false)
    }

    /// Takes a sample `second` seconds after the beginning.
    private func look(_ finder: inout StallFinder, _ second: Int, _ states: SchedulerState...) -> [String] {
        finder.look(at: states, at: begin + .seconds(second)).map { stall in
            switch stall.kind {
            case .body(let worker, _): "a body on \(worker.index), \(stall.duration.short)"
            case .wait(let queue, let waiting): "\(waiting) in \(queue), \(stall.duration.short)"
            }
        }
    }

    @Test func `a body is reported once, and its worker's next one a whole limit after detection`() throws {
        var finder = finder()
        #expect(try look(&finder, 0, seen(activity: "runs", executed: 5)) == [])
        #expect(try look(&finder, 9, seen(activity: "runs", executed: 5)) == [])
        #expect(try look(&finder, 10, seen(activity: "blocks", executed: 5)) == ["a body on 0, 10 s"])
        #expect(try look(&finder, 30, seen(activity: "runs", executed: 5)) == [])
        #expect(try look(&finder, 31, seen(activity: "runs", executed: 6)) == [])
        #expect(try look(&finder, 40, seen(activity: "runs", executed: 6)) == [])
        #expect(try look(&finder, 41, seen(activity: "runs", executed: 6)) == ["a body on 0, 10 s"])
    }

    @Test func `an inbox stall is reported once, and again when others wait too long`() throws {
        var finder = finder()
        let told = "in the inboxes of default priority, 10 s"
        #expect(try look(&finder, 0, seen(queue: (1, 1))) == [])
        #expect(try look(&finder, 5, seen(queue: (3, 3))) == [])
        #expect(try look(&finder, 10, seen(queue: (3, 3))) == ["3 \(told)"])
        #expect(try look(&finder, 15, seen(queue: (3, 3))) == [])
        #expect(try look(&finder, 20, seen(queue: (0, 3))) == [])
        #expect(try look(&finder, 30, seen(queue: (1, 4))) == [])
        #expect(try look(&finder, 39, seen(queue: (2, 5))) == [])
        #expect(try look(&finder, 40, seen(queue: (2, 5))) == ["2 \(told)"])
    }

    @Test func `an inbox that is served fairly is no stall`() throws {
        var finder = finder()
        for step in 0..<20 {
            #expect(try look(&finder, 6 * step, seen(queue: (4, 4 + 3 * step))) == [])
        }
        finder = self.finder()
        for step in 1..<20 {
            #expect(try look(&finder, 10 * step, seen(queue: (3, 3 * step))) == [])
        }
    }

    @Test func `a stall at a worker is reported once, and again after something was taken`() throws {
        func stuck(_ waiting: Int) throws -> SchedulerState {
            try seen(activity: "runs", executed: 5, waiting: waiting)
        }
        var finder = StallFinder(bodyLimit: .seconds(1_000), waitLimit: .seconds(10), readsStacks: false)
        #expect(try look(&finder, 0, stuck(0)) == [])
        #expect(try look(&finder, 5, stuck(3)) == [])
        #expect(try look(&finder, 15, stuck(4)) == ["4 in the queues of worker 0, 10 s"])
        #expect(try look(&finder, 30, stuck(4)) == [])
        #expect(try look(&finder, 31, stuck(2)) == [])
        #expect(try look(&finder, 40, stuck(1)) == [])
        #expect(try look(&finder, 49, stuck(1)) == [])
        #expect(try look(&finder, 50, stuck(1)) == ["1 in the queues of worker 0, 10 s"])
    }

    @Test func `time under a suspension never counts, whatever waits`() throws {
        func waiting(_ isSuspended: Bool) throws -> SchedulerState {
            try seen(isSuspended: isSuspended, queue: (1, 1), activity: "runs", executed: 5, waiting: 1)
        }
        var finder = StallFinder(bodyLimit: .seconds(1_000), waitLimit: .seconds(10), readsStacks: false)
        #expect(try look(&finder, 0, waiting(false)) == [])
        #expect(try look(&finder, 9, waiting(true)) == [])
        #expect(try look(&finder, 30, waiting(true)) == [])
        #expect(try look(&finder, 31, waiting(false)) == [])
        #expect(try look(&finder, 40, waiting(false)) == [])
        #expect(try look(&finder, 41, waiting(false)).count == 2)
    }

    @Test func `schedulers of one name are distinct, and a new one is not the old`() throws {
        var finder = finder()
        func one(_ id: Int) throws -> SchedulerState {
            try seen(id: id, queue: (1, 1), activity: "runs", executed: 5)
        }
        #expect(try look(&finder, 0, one(1), one(2)) == [])
        #expect(try look(&finder, 10, one(1), one(2)).count == 4)
        #expect(try look(&finder, 20, one(1)) == [])
        #expect(try look(&finder, 30, one(1), one(2)) == [])
        #expect(try look(&finder, 40, one(1), one(2)).count == 2)
    }

    @Test func `a wait's sentence gives the number of waiters`() throws {
        var finder = finder()
        _ = try look(&finder, 0, seen(queue: (1, 1)), seen(id: 2, queue: (2, 2)))
        let states = try [seen(queue: (1, 1)), seen(id: 2, queue: (2, 2))]
        #expect(
            finder.look(at: states, at: begin + .seconds(10)).map { "\($0)" }
                == ["1 is", "2 are"].map {
                    "an operation in the inboxes of default priority of scheduler 'seen' has waited for a worker for "
                        + "10 s at least; \($0) there"
                })
    }
}
