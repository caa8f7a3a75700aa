// S4 wait safety, S5 wait liveness, and the counter by itself.

import CScheduler
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

private enum NotificationStep {
    case notify
    case cancel(Int)
    case release(Int)
    case leave
}

/// A notification, the number of its calls, and whether it was cancelled in time. Released once.
private final class Notified: Sendable {
    private let handle: OpaquePointerBox
    private let calls: Count
    private let cancelled = Count()

    init(on counter: OpaquePointer) throws {
        let calls = Count()
        self.calls = calls
        // The count outlives the counter, because the code that reads the count holds this object.
        let handle = csched_completion_notify(
            counter, { Unmanaged<Count>.fromOpaque($0!).takeUnretainedValue().add() },
            Unmanaged.passUnretained(calls).toOpaque())
        self.handle = OpaquePointerBox(try #require(handle))
    }

    func cancel() {
        if csched_notification_cancel(handle.pointer) { cancelled.add() }
    }

    func release() { csched_notification_release(handle.pointer) }

    /// Valid after the end of the generation.
    var isRight: Bool { calls.value + cancelled.value == 1 }
}

private struct OpaquePointerBox: Sendable {
    // Unsafe: the C side synchronises every call.
    nonisolated(unsafe) let pointer: OpaquePointer
    init(_ pointer: OpaquePointer) { self.pointer = pointer }
}

extension Stress {
    @Suite(.inTurn) struct Waiting {
        /// `Slots` is plain memory: a weakened ordering is a data race under ThreadSanitizer.
        @Test(arguments: [1, 2, 4])
        func `a wait sees the operations' writes`(workers: Int) throws {
            try withScheduler(.workers(workers)) { scheduler in
                let counter = try CompletionCounter()
                for round in 1...scaled(300) {
                    let slots = Slots(count: 8)
                    for index in 0..<8 { try scheduler.submit(in: counter) { slots[index] = round } }
                    counter.wait()
                    try #require(slots.sum == 8 * round)
                }
            }
        }

        @Test(arguments: [2, 8])
        func `the last leaver sees all other leavers' writes`(threads: Int) throws {
            for value in 1...scaled(200) {
                let counter = try CompletionCounter()
                let slots = Slots(count: threads)
                counter.enter(threads)
                let sums = concurrently(threads) { index -> Int? in
                    slots[index] = value
                    return counter.leave() ? slots.sum : nil
                }
                try #require(sums.compactMap(\.self) == [threads * value])
            }
        }

        @Test func `an operation sees its submitter's writes`() throws {
            try withScheduler(.workers(2)) { scheduler in
                let counter = try CompletionCounter()
                for value in 1...scaled(1000) {
                    let slots = Slots(count: 2)
                    slots[0] = value
                    try scheduler.submit(in: counter) { slots[1] = slots[0] }
                    counter.wait()
                    try #require(slots[1] == value)
                }
            }
        }

        @Test func `many waiters, early and late, all return`() throws {
            try withScheduler(.workers(2)) { scheduler in
                for _ in 0..<scaled(60) {
                    let counter = try CompletionCounter()
                    let gate = Gate()
                    try scheduler.submit(in: counter) { gate.wait() }
                    let outcomes = concurrently(9) { thread in
                        if thread == 0 { gate.open() }
                        return counter.wait(timeout: .seconds(20))
                    }
                    try #require(outcomes.allSatisfy { $0 == .completed })
                }
            }
        }

        /// The waiter of one generation is released although the next one begins at once.
        @Test func `a waiter is released while the counter goes on`() throws {
            let counter = try CompletionCounter()
            let stop = Count()
            counter.enter()
            let outcomes = concurrently(3) { thread -> CompletionCounter.WaitOutcome in
                if thread == 0 {
                    while stop.value < 2 {  // never at zero for longer than the time between two instructions
                        counter.leave()
                        counter.enter()
                    }
                    return .completed
                }
                defer { stop.add() }
                for _ in 0..<scaled(100) where counter.wait(timeout: .seconds(20)) == .timedOut {
                    return .timedOut
                }
                return .completed
            }
            #expect(outcomes == [.completed, .completed, .completed])
            counter.leave()
        }

        @Test func `a notification fires once, after the operations and before no one`() throws {
            try withScheduler(.workers(3)) { scheduler in
                for _ in 0..<scaled(300) {
                    let counter = try CompletionCounter()
                    let slots = Slots(count: 4)
                    let done = try CompletionCounter()
                    let fired = Count()
                    for index in 0..<4 { try scheduler.submit(in: counter) { slots[index] = 1 } }
                    done.enter(3)
                    for _ in 0..<3 {
                        try counter.notify {
                            if slots.sum == 4 { fired.add() }
                            done.leave()
                        }
                    }
                    try #require(done.wait(timeout: .seconds(20)) == .completed)
                    try #require(fired.value == 3)
                }
            }
        }

        /// A worker holds back a bounded number of completions, however many operations of one counter come in a
        /// row.
        @Test func `a long chain counts as the few operations that are outstanding`() throws {
            try withScheduler(.workers(1)) { scheduler in
                let counter = try CompletionCounter()
                let most = Count()
                let left = Count()
                left.reset(to: scaled(isThreadSanitized ? 100_000 : 1_000_000))
                @Sendable func chain() {
                    let outstanding = counter.outstanding
                    if outstanding > most.value { most.raise(to: outstanding) }
                    guard left.add(-1) > 0 else { return }
                    do { try scheduler.submit(in: counter, chain) } catch { Issue.record(error) }
                }
                try scheduler.submit(in: counter, chain)
                counter.wait()
                #expect(left.value == 0)
                #expect(most.value < 3000)
                #expect(counter.outstanding == 0)
            }
        }

        /// In its own process, because its memory is measured.
        @Test(.enabled(if: !isThreadSanitized && !isAddressSanitized))
        func `cancelled notifications leave no memory behind`() async {
            await #expect(processExitsWith: .success) { try cancelOften() }
        }

        /// Each case is long enough for more than one sweep of the list.
        @Test func `uncancelled ones fire exactly once, cancelled ones never`() async {
            let step = Generator<NotificationStep> { source in
                let kind = source.draw(below: 24)
                let choice = Int(source.draw(below: 1000))
                return kind < 12
                    ? .notify : kind < 20 ? .cancel(choice) : kind < 23 ? .release(choice) : .leave
            }
            await forAll(
                .array(of: step, count: 0...1000), cases: scaled(100),
                covering: [.cover(30, "a long list") { $0.count > 300 }]
            ) { steps in
                let counter = try #require(csched_completion_create())
                csched_completion_enter(counter, 1)
                var notified: [Notified] = []
                var held: [Int] = []
                for step in steps {
                    switch step {
                    case .notify:
                        held.append(notified.count)
                        notified.append(try Notified(on: counter))
                    case .cancel(let choice) where !held.isEmpty:
                        let index = held.remove(at: choice % held.count)
                        notified[index].cancel()
                        try #require(notified[index].isRight)
                    case .release(let choice) where !held.isEmpty:
                        notified[held.remove(at: choice % held.count)].release()
                    case .cancel, .release:
                        break
                    case .leave:
                        try #require(csched_completion_leave(counter, 1))
                        for each in notified { try #require(each.isRight) }
                        csched_completion_enter(counter, 1)
                    }
                }
                for index in held { notified[index].release() }
                try #require(csched_completion_leave(counter, 1))
                for each in notified { try #require(each.isRight) }
                csched_completion_release(counter)
            }
        }

        @Test func `concurrent notify and cancel calls sweep nothing live`() throws {
            for _ in 0..<scaled(20) {
                // Unsafe: the C side synchronises every call.
                nonisolated(unsafe) let counter = try #require(csched_completion_create())
                csched_completion_enter(counter, 1)
                let wrong = Count()
                let busy = Count()
                busy.reset(to: 3)
                let made = concurrently(4) { thread -> [Notified] in
                    if thread == 3 {
                        // Ends generations while the other threads work.
                        while busy.value > 0 {
                            csched_completion_leave(counter, 1)
                            csched_completion_enter(counter, 1)
                            yieldOften(Int.random(in: 0...20))
                        }
                        return []
                    }
                    defer { busy.add(-1) }
                    var notified: [Notified] = []
                    var held: [Notified] = []
                    for _ in 0..<1000 {
                        do {
                            let next = try Notified(on: counter)
                            notified.append(next)
                            held.append(next)
                        } catch { wrong.add() }
                        while held.count > 100 || (!held.isEmpty && Int.random(in: 0...2) > 0) {
                            let next = held.remove(at: Int.random(in: 0..<held.count))
                            if Int.random(in: 0...3) > 0 { next.cancel() } else { next.release() }
                        }
                    }
                    for each in held { each.release() }
                    return notified
                }
                csched_completion_leave(counter, 1)
                csched_completion_release(counter)
                let all = made.flatMap(\.self)
                try #require(wrong.value == 0 && all.count == 3000)
                try #require(all.allSatisfy { $0.isRight })
            }
        }

        @Test func `tasks wait, are cancelled, and go on`() async throws {
            let scheduler = try Scheduler(.workers(2))
            for _ in 0..<scaled(100) {
                let counter = try CompletionCounter()
                counter.enter()
                let waiting = (0..<4).map { _ in Task { try await counter.wait() } }
                waiting[0].cancel()
                await #expect(throws: CancellationError.self) { try await waiting[0].value }
                try scheduler.submit { counter.leave() }
                for task in waiting.dropFirst() { try await task.value }
            }
            try await scheduler.shutdown()
        }

        @Test func `a cancellation that races the end resumes a task once`() async throws {
            let scheduler = try Scheduler(.workers(2))
            for _ in 0..<scaled(300) {
                let counter = try CompletionCounter()
                try scheduler.submit(in: counter) {}
                let task = Task { () -> Bool in
                    do { try await counter.wait() } catch { return false }
                    return counter.outstanding == 0
                }
                task.cancel()
                _ = await task.value
            }
            try await scheduler.shutdown()
        }

        /// A worker enters a body's own counter in advance for what the body submits to it. A notification is
        /// not such a body, although a worker calls it: here its submission goes to the other worker, while its
        /// own worker sleeps.
        @Test func `a notification's submission completes as its worker sleeps`() throws {
            let scheduler = try Scheduler(.workers(2))
            for _ in 0..<scaled(100) {
                let counter = try CompletionCounter()
                let mayEnd = Gate()
                let mayReturn = Gate()
                try scheduler.submit(in: counter) { mayEnd.wait() }
                try counter.notify {
                    try? scheduler.submit(in: counter) { mayReturn.open() }
                    mayReturn.wait()
                }
                mayEnd.open()
                mayReturn.wait()
                try #require(counter.wait(timeout: .seconds(20)) == .completed)
            }
            try scheduler.shutdown()
        }

        /// Advance entries that are not used are returned, however many there are.
        @Test func `any number of submissions to the body's own counter completes`() async throws {
            let scheduler = try Scheduler(.workers(2))
            await forAll(.array(of: .int(in: 0...200), count: 1...20), cases: scaled(200)) { numbers in
                try expectAll(of: numbers, on: scheduler)
            }
            try await scheduler.shutdown()
        }
    }
}

private func expectAll(of numbers: [Int], on scheduler: Scheduler) throws {
    let counter = try CompletionCounter()
    let ran = Count()
    try scheduler.submit(in: counter) { submit(numbers[...], counting: ran, in: counter, on: scheduler) }
    try #require(counter.wait(timeout: .seconds(20)) == .completed)
    try #require(ran.value == numbers.reduce(0, +))
    try #require(counter.outstanding == 0)
}

/// Submits as many operations as the first number says, and one that does the same with the remaining numbers.
private func submit(
    _ numbers: ArraySlice<Int>, counting ran: Count, in counter: CompletionCounter, on scheduler: Scheduler
) {
    guard let first = numbers.first else { return }
    for _ in 0..<first { try? scheduler.submit(in: counter) { ran.add() } }
    try? scheduler.submit(in: counter) {
        submit(numbers.dropFirst(), counting: ran, in: counter, on: scheduler)
    }
}

@Suite(.inTurn) struct CompletionCounterTests {
    @Test func `a new counter is complete`() throws {
        let counter = try CompletionCounter()
        #expect(counter.outstanding == 0)
        #expect(counter.wait(timeout: .zero) == .completed)
        let fired = Count()
        try counter.notify { fired.add() }
        #expect(fired.value == 1)
    }

    @Test func `enters and leaves are counted`() throws {
        let counter = try CompletionCounter()
        counter.enter(3)
        counter.enter(0)
        #expect(counter.outstanding == 3)
        #expect(!counter.leave())
        #expect(!counter.leave())
        #expect(counter.wait(timeout: .zero) == .timedOut)
        #expect(counter.wait(timeout: .seconds(-1)) == .timedOut)
        #expect(counter.leave())
        #expect(counter.wait(timeout: .seconds(Int64.max)) == .completed)
    }

    @Test func `exactly one leaver per generation learns it was last`() throws {
        let counter = try CompletionCounter()
        for _ in 0..<scaled(200) {
            counter.enter(4)
            #expect(concurrently(4) { _ in counter.leave() }.count { $0 } == 1)
        }
    }

    @Test func `a wait ends at its timeout, not before`() throws {
        let counter = try CompletionCounter()
        counter.enter()
        let duration = ContinuousClock().measure {
            #expect(counter.wait(timeout: .milliseconds(20)) == .timedOut)
        }
        #expect(duration >= .milliseconds(20))
        counter.leave()
    }

    @Test func `an abandoned counter fires and frees its notification`() throws {
        let released = Count()
        try withScheduler(.workers(1)) { scheduler in
            let gate = Gate()
            do {
                let counter = try CompletionCounter()
                try scheduler.submit(in: counter) { gate.wait() }
                let token = Token(released)
                try counter.notify { withExtendedLifetime(token) {} }
            }
            #expect(released.value == 0)
            gate.open()
        }
        #expect(released.value == 1)
    }

    @Test func `leaving more often than entering stops the process`() async {
        await #expect(processExitsWith: .signal(SIGABRT)) { try CompletionCounter().leave() }
    }

    @Test func `entering a negative number stops the process`() async {
        await #expect(processExitsWith: .failure) { try CompletionCounter().enter(-1) }
    }

    @Test func `more operations than a counter holds stop the process`() async {
        await #expect(processExitsWith: .signal(SIGABRT)) {
            let counter = try CompletionCounter()
            counter.enter(0x1FFF_FFFF)
            counter.enter()
        }
    }
}

private func cancelOften() throws {
    let counter = try #require(csched_completion_create())
    csched_completion_enter(counter, 1)
    let fired = Count()
    let context = Unmanaged.passUnretained(fired).toOpaque()
    func notify() throws -> OpaquePointer {
        let notification = csched_completion_notify(
            counter, { Unmanaged<Count>.fromOpaque($0!).takeUnretainedValue().add() }, context)
        return try #require(notification)
    }
    func cancel(_ times: Int) throws -> Int {
        try (0..<times).count { _ in csched_notification_cancel(try notify()) }
    }
    let live = try (0..<10).map { _ in try notify() }
    _ = try cancel(1000)
    let before = try memoryInUse()
    #expect(try cancel(100_000) == 100_000)
    let growth = try memoryInUse() - before
    #expect(growth < 64 << 10)
    #expect(fired.value == 0)
    #expect(csched_completion_leave(counter, 1))
    #expect(fired.value == 10)
    for each in live { csched_notification_release(each) }
    csched_completion_release(counter)
}
