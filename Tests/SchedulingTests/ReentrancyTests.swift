// S15: bodies and notifications call the scheduler. S16: a wait inside a body runs what it waits
// for, so that one worker is enough.

import PropertyTesting
import Scheduling
import PropertyTestingSupport
import Testing

extension Stress {
    @Suite(.inTurn) struct Reentrancy {
        @Test(arguments: [1, 2, 4])
        func `bodies submit and wait for their children, nested`(workers: Int) throws {
            try withScheduler(.init(workers: workers)) { scheduler in
                let leaves = Count()
                @Sendable func tree(_ depth: Int) {
                    guard depth > 0 else {
                        leaves.add()
                        return
                    }
                    do {
                        let children = try CompletionCounter()
                        for _ in 0..<3 { try scheduler.submit(in: children) { tree(depth - 1) } }
                        children.wait()
                    } catch { Issue.record(error) }
                }
                for _ in 0..<scaled(5) {
                    leaves.reset()
                    let counter = try CompletionCounter()
                    try scheduler.submit(in: counter) { tree(6) }
                    try #require(counter.wait(timeout: .seconds(20)) == .completed)
                    try #require(leaves.value == 729)
                }
            }
        }

        @Test(arguments: [1, 3])
        func `waits in bodies nest 100 deep`(workers: Int) throws {
            try withScheduler(.init(workers: workers)) { scheduler in
                let deepest = Count()
                @Sendable func descend(_ depth: Int) {
                    deepest.raise(to: depth)
                    guard depth < 100 else { return }
                    do {
                        let child = try CompletionCounter()
                        try scheduler.submit(in: child) { descend(depth + 1) }
                        child.wait()
                    } catch { Issue.record(error) }
                }
                let counter = try CompletionCounter()
                try scheduler.submit(in: counter) { descend(1) }
                #expect(counter.wait(timeout: .seconds(20)) == .completed)
                #expect(deepest.value == 100)
            }
        }

        /// The waiting worker sleeps, because there is nothing to help with; the outside thread must wake it.
        @Test(arguments: [1, 2])
        func `a wait in a body ends when an outside thread leaves`(workers: Int) throws {
            try withScheduler(.init(workers: workers)) { scheduler in
                for _ in 0..<scaled(300) {
                    let outside = try CompletionCounter()
                    let counter = try CompletionCounter()
                    outside.enter()
                    let started = Gate()
                    try scheduler.submit(in: counter) {
                        started.open()
                        outside.wait()
                    }
                    started.wait()
                    outside.leave()
                    try #require(counter.wait(timeout: .seconds(20)) == .completed)
                }
            }
        }

        @Test func `a wait in a body runs outside submissions meanwhile`() throws {
            try withScheduler(.init(workers: 1)) { scheduler in
                let awaited = try CompletionCounter()
                let counter = try CompletionCounter()
                awaited.enter()
                let started = Gate()
                try scheduler.submit(in: counter) {
                    started.open()
                    awaited.wait()
                }
                started.wait()
                try scheduler.submit { awaited.leave() }
                #expect(counter.wait(timeout: .seconds(20)) == .completed)
            }
        }

        @Test func `a wait in a body of another scheduler's operations completes`() throws {
            try withScheduler(.init(workers: 1)) { first in
                try withScheduler(.init(workers: 1)) { second in
                    let counter = try CompletionCounter()
                    try first.submit(in: counter) {
                        do {
                            let inner = try CompletionCounter()
                            for _ in 0..<100 { try second.submit(in: inner) {} }
                            inner.wait()
                        } catch { Issue.record(error) }
                    }
                    #expect(counter.wait(timeout: .seconds(20)) == .completed)
                }
            }
        }

        @Test func `a wait in a body times out`() throws {
            try withScheduler(.init(workers: 1)) { scheduler in
                let never = try CompletionCounter()
                never.enter()
                let counter = try CompletionCounter()
                let timedOut = Count()
                try scheduler.submit(in: counter) {
                    for timeout: Duration in [.zero, .milliseconds(5), .milliseconds(20)] {
                        let duration = ContinuousClock().measure {
                            if never.wait(timeout: timeout) == .timedOut { timedOut.add() }
                        }
                        #expect(duration >= timeout)
                    }
                }
                #expect(counter.wait(timeout: .seconds(20)) == .completed)
                #expect(timedOut.value == 3)
                never.leave()
            }
        }

        /// A body counts as outstanding while it runs, so its group cannot complete meanwhile.
        @Test func `a body waits for another group than its own, with a timeout, among siblings`() throws {
            try withScheduler(.init(workers: 2)) { scheduler in
                for _ in 0..<scaled(100) {
                    let group = try CompletionCounter()
                    let completed = Count()
                    for _ in 0..<20 {
                        try scheduler.submit(in: group) {
                            do {
                                let child = try CompletionCounter()
                                try scheduler.submit(in: child) {}
                                try scheduler.submit(in: group) { completed.add() }
                                child.wait()
                                if group.outstanding > 0 { completed.add() }
                            } catch { Issue.record(error) }
                        }
                    }
                    try #require(group.wait(timeout: .seconds(20)) == .completed)
                    try #require(completed.value == 40)
                }
            }
        }

        @Test func `a body suspends and resumes its scheduler`() throws {
            try withScheduler(.init(workers: 2)) { scheduler in
                let counter = try CompletionCounter()
                let runs = Count()
                for _ in 0..<scaled(500) {
                    try scheduler.submit(in: counter) {
                        scheduler.suspend()
                        do { try scheduler.submit(in: counter) { runs.add() } } catch { Issue.record(error) }
                        scheduler.resume()
                    }
                }
                #expect(counter.wait(timeout: .seconds(20)) == .completed)
                #expect(runs.value == scaled(500))
            }
        }

        @Test func `a shutdown from a body would deadlock, says so, and changes nothing`() throws {
            try withScheduler(.init(workers: 2)) { scheduler in
                let counter = try CompletionCounter()
                let refused = Count()
                try scheduler.submit(in: counter) {
                    for policy: Scheduler.ShutdownPolicy in [.drain, .cancelPending, .deadline(.seconds(1))] {
                        if code({ try scheduler.shutdown(policy) }) == .wouldDeadlock { refused.add() }
                    }
                }
                counter.wait()
                #expect(refused.value == 3)
                try scheduler.submit(in: counter) {}
                counter.wait()
            }
        }

        @Test func `a body shuts another scheduler down, and makes one`() throws {
            try withScheduler(.init(workers: 1)) { scheduler in
                let counter = try CompletionCounter()
                let runs = Count()
                try scheduler.submit(in: counter) {
                    do {
                        try withScheduler(.init(workers: 2)) { inner in
                            for _ in 0..<100 { try inner.submit { runs.add() } }
                        }
                    } catch { Issue.record(error) }
                }
                #expect(counter.wait(timeout: .seconds(20)) == .completed)
                #expect(runs.value == 100)
            }
        }

        /// One worker takes both operations at once. It must not hold the second one while it runs the first
        /// group's notification.
        @Test(arguments: [1, 2])
        func `a notification waits for its worker's next operation`(workers: Int) throws {
            try withScheduler(.init(workers: workers)) { scheduler in
                for _ in 0..<scaled(50) {
                    let first = try CompletionCounter()
                    let second = try CompletionCounter()
                    let (ended, completed) = (Gate(), Count())
                    scheduler.suspend()
                    try scheduler.submit(in: first) {}
                    try scheduler.submit(in: second) {}
                    try first.notify {
                        if second.wait(timeout: .seconds(20)) == .completed { completed.add() }
                        ended.open()
                    }
                    scheduler.resume()
                    ended.wait()
                    try #require(completed.value == 1)
                }
            }
        }

        @Test func `a worker on which a notification waited is idle afterwards`() throws {
            try withScheduler(.init(workers: 1)) { scheduler in
                let never = try CompletionCounter()
                never.enter()
                let counter = try CompletionCounter()
                let ended = Gate()
                scheduler.suspend()
                try scheduler.submit(in: counter) {}
                try counter.notify {
                    #expect(never.wait(timeout: .milliseconds(1)) == .timedOut)
                    ended.open()
                }
                scheduler.resume()
                ended.wait()
                #expect(eventually { scheduler.statistics.running == 0 })
                never.leave()
            }
        }

        @Test func `a notification submits, enters the next generation and is notified of it`() throws {
            try withScheduler(.init(workers: 2)) { scheduler in
                let counter = try CompletionCounter()
                let done = try CompletionCounter()
                done.enter()
                let generations = scaled(500)
                @Sendable func next(_ left: Int) {
                    guard left > 0 else {
                        done.leave()
                        return
                    }
                    do {
                        counter.enter()
                        try counter.notify { next(left - 1) }
                        try scheduler.submit { counter.leave() }
                    } catch { Issue.record(error) }
                }
                next(generations)
                #expect(done.wait(timeout: .seconds(20)) == .completed)
            }
        }
    }
}
