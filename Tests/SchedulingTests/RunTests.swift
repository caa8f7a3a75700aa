// run: the value, the errors and the thread of a body that a task sends to a worker, and the effects of a
// cancellation and a shutdown.

import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

private struct Refusal: Error, Equatable { let number: Int }

/// Not `Sendable`: only one isolation domain may hold it.
private final class Note {
    var text: String
    init(_ text: String) { self.text = text }
}

private actor Desk {
    private(set) var notes: [String] = []

    func write(_ text: String, on scheduler: Scheduler) async throws {
        let note = try await scheduler.run { Note(text + (Scheduler.current === scheduler ? "!" : "?")) }
        note.text += "."
        preconditionIsolated()
        notes.append(note.text)
    }
}

private enum Request { @TaskLocal static var id = 0 }

@Suite(.inTurn) struct RunTests {
    @Test(arguments: [1, 3])
    func `every value comes back to the task that asked for it`(workers: Int) async throws {
        try await withScheduler(.workers(workers)) { scheduler in
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<500 {
                    group.addTask { try await scheduler.run { number } == number }
                    group.addTask {
                        try await scheduler.run {
                            await Task.yield()
                            return number
                        } == number
                    }
                }
                for try await isRight in group { #expect(isRight) }
            }
        }
    }

    @Test func `a body runs on a worker, and the caller resumes where it was`() async throws {
        try await withScheduler(.workers(2)) { scheduler in
            let desk = Desk()
            try await desk.write("tea", on: scheduler)
            #expect(await desk.notes == ["tea!."])
            let isThere = try await scheduler.run {
                await Task.yield()
                async let child = Scheduler.current === scheduler
                return await child && Scheduler.current === scheduler
            }
            #expect(isThere)
            #expect(Scheduler.current == nil)
        }
    }

    @Test func `a body's captures and its result need not be Sendable`() async throws {
        try await withScheduler(.workers(1)) { scheduler in
            let note = Note("tea")
            let text = try await scheduler.run {
                note.text += " and cake"
                return note.text
            }
            let made = try await scheduler.run { Note(text) }
            made.text += "!"
            #expect(made.text == "tea and cake!")
        }
    }

    @Test func `the error of a body is the caller's`() async throws {
        try await withScheduler(.workers(2)) { scheduler in
            await forAll(.int(in: 0...1_000)) { number in
                let refusal = Refusal(number: number)
                await #expect(throws: refusal) { try await scheduler.run { throw refusal } }
                await #expect(throws: refusal) {
                    try await scheduler.run {
                        await Task.yield()
                        throw refusal
                    }
                }
            }
        }
    }

    /// One worker: a wait that did not help would need another worker.
    @Test func `a body may wait for operations of its own scheduler`() async throws {
        try await withScheduler(.workers(1)) { scheduler in
            let sum = try await scheduler.run {
                let counter = try CompletionCounter()
                let runs = Count()
                for _ in 0..<10 { try scheduler.submit(in: counter) { runs.add() } }
                counter.wait()
                try scheduler.forEach(0..<10) { _ in runs.add() }
                let (first, second) = Scheduler.join({ runs.value }, { 1 })
                return first + second
            }
            #expect(sum == 21)
        }
    }

    @Test func `a body sees its task`() async throws {
        try await withScheduler(.workers(1)) { scheduler in
            try await Request.$id.withValue(42) {
                let synchronous = try await scheduler.run { Request.id }
                let asynchronous = try await scheduler.run {
                    await Task.yield()
                    return Request.id
                }
                #expect(synchronous == 42 && asynchronous == 42)
            }
            let gate = Gate()
            let started = Gate()
            let task = Task {
                try await scheduler.run {
                    started.open()
                    gate.wait()
                    return Task.isCancelled
                }
            }
            _ = concurrently(1) { _ in started.wait() }
            task.cancel()
            gate.open()
            // Once the body has begun, it runs to its end, and its value is returned.
            let wasCancelled = try await task.value
            #expect(wasCancelled)
        }
    }

    @Test func `a body whose task was cancelled first does not begin`() async throws {
        try await withScheduler(.workers(1)) { scheduler in
            let begun = Count()
            let gate = Gate()
            let started = Gate()
            try scheduler.submit {
                started.open()
                gate.wait()
            }
            let waiting = Task { try await scheduler.run { _ = begun.add() } }
            let asynchronous = Task {
                try await scheduler.run {
                    await Task.yield()
                    begun.add()
                }
            }
            let before = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                try await scheduler.run { _ = begun.add() }
            }
            await #expect(throws: CancellationError.self) { try await before.value }
            // Both have been submitted, and wait behind the gate.
            #expect(eventually { scheduler.statistics.submitted >= 3 })
            waiting.cancel()
            asynchronous.cancel()
            gate.open()
            await #expect(throws: CancellationError.self) { try await waiting.value }
            await #expect(throws: CancellationError.self) { try await asynchronous.value }
            #expect(begun.value == 0)
        }
    }

    @Test func `a closed scheduler begins no body, and says so`() async throws {
        let scheduler = try Scheduler(.workers(1))
        let begun = Count()
        let released = Count()
        scheduler.suspend()
        let waiting = Task { [token = Token(released)] in
            try await scheduler.run {
                _ = token
                begun.add()
            }
        }
        #expect(eventually { scheduler.statistics.submitted >= 1 })
        try await scheduler.shutdown(.cancelPending)
        await #expect(throws: SchedulerError(.closed)) { try await waiting.value }
        await #expect(throws: SchedulerError(.closed)) { try await scheduler.run { _ = begun.add() } }
        await #expect(throws: SchedulerError(.closed)) {
            try await scheduler.run {
                await Task.yield()
                begun.add()
            }
        }
        #expect(begun.value == 0)
        #expect(eventually { released.value == 1 })
    }

    @Test func `a shutdown that drains runs the bodies that wait`() async throws {
        let scheduler = try Scheduler(.workers(1))
        scheduler.suspend()
        let waiting = Task { try await scheduler.run { 3 } }
        #expect(eventually { scheduler.statistics.submitted >= 1 })
        try await scheduler.shutdown()
        let value = try await waiting.value
        #expect(value == 3)
    }
}
