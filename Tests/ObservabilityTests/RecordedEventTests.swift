// RecordedEventTests - every event that is to be recorded is recorded. Each test has its own process, so that no other thread's
// events can be mistaken for it.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import Glibc
@testable import Observability
import PropertyTesting
import Scheduling
import Testing

private typealias Event = Recording.Event
private typealias Track = Recording.Track

private func events() -> [Event] { Recorder.recording().tracks.flatMap(\.events) }
private func count(_ kind: Recording.Kind) -> Int { events().count { $0.kind == kind } }

/// Whether a scheduler's workers have recorded as many events as they have counted, steals and sleeps among them.
private func isAsCounted(_ scheduler: String) -> Bool {
    let workers = SchedulerState.all().first { $0.name == scheduler }?.workers ?? []
    let steals = events().filter { $0.kind == .steal }
    let stolen = steals.reduce(0) { $0 + Int($1.number) }
    return stolen > 0 && workers.reduce(0) { $0 + $1.stolen } == stolen
        && count(.park) > 0 && workers.reduce(0) { $0 + $1.parked } == count(.park)
        && workers.reduce(0) { $0 + $1.executed } == count(.end)
}

private func isRefused(_ submit: () throws -> Void) -> Bool {
    do { try submit() } catch { return true }
    return false
}

extension OneRecorder {
    @Suite struct RecordedEventTests {
        @Test func `many operations at once are each handed over, and each refused`() async {
            await #expect(processExitsWith: .success) {
                Recorder.start()
                let scheduler = try! Scheduler(.init(workers: 1, name: "rec-k", spareWorkers: 0))
                let bodies = (0..<3).map { number -> @Sendable () -> Void in { _ = number } }
                let counter = try! CompletionCounter()
                try! scheduler.submit(contentsOf: bodies, in: counter)
                try! await counter.completed()
                try! scheduler.submit(in: counter) {
                    try! scheduler.submit(contentsOf: bodies, in: counter)
                }
                try! await counter.completed()
                try! await scheduler.shutdown()
                precondition(count(.submit) == 7 && count(.begin) == 7 && count(.end) == 7)
                precondition(Recorder.recording().handovers().count == 7)
                precondition(isRefused { try scheduler.submit(contentsOf: bodies) })
                precondition(count(.refuse) == 3)
                precondition(isRefused { try scheduler.submit {} })
                precondition(count(.refuse) == 4)
            }
        }

        @Test func `task jobs are handed over, and named as such`() async {
            await #expect(processExitsWith: .success) {
                Recorder.start()
                let scheduler = try! Scheduler(.init(workers: 1, name: "rec-l", spareWorkers: 0))
                try! await scheduler.run { await Task.yield() }
                try! await scheduler.shutdown()
                let recording = Recorder.recording()
                let jobs = recording.handovers().filter {
                    recording[$0.begun].operation?.function == "job of a task"
                }
                precondition(!jobs.isEmpty)
                precondition(recording.handovers().count == count(.begin))
                _ = await operation { 1 }.outcome  // the operation's object is also a job, but not a task's
                let names = events().compactMap { $0.operation?.function }
                precondition(!names.contains { $0.contains("runJob") || $0.contains("runTaskJob") })
                precondition(names.contains { $0 != "job of a task" })
            }
        }

        @Test func `recorded steals, sleeps and bodies match the workers' counts`() async {
            await #expect(processExitsWith: .success) {
                Recorder.start()
                let scheduler = try! Scheduler(.init(workers: 2, name: "rec-m", spareWorkers: 0))
                let counter = try! CompletionCounter()
                try! scheduler.submit(in: counter) {
                    let isStolen = DispatchSemaphore(value: 0)
                    try! scheduler.submit(in: counter) { isStolen.signal() }
                    isStolen.wait()
                }
                try! await counter.completed()
                let areCounted = await eventually { isAsCounted("rec-m") }
                precondition(areCounted && count(.end) == 2 && count(.park) > 0)
            }
        }

        @Test func `a steal by a worker that waits is an event, too`() async {
            await #expect(processExitsWith: .success) {
                Recorder.start()
                let scheduler = try! Scheduler(.init(workers: 2, name: "rec-n", spareWorkers: 0))
                let (counter, inner) = (try! CompletionCounter(), try! CompletionCounter())
                let (otherIsThere, isThere) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
                try! scheduler.submit(in: counter) {
                    otherIsThere.wait()
                    let isStolen = DispatchSemaphore(value: 0)
                    try! scheduler.submit(in: inner) { isStolen.signal() }
                    isThere.signal()
                    isStolen.wait()
                }
                try! scheduler.submit(in: counter) {
                    otherIsThere.signal()
                    isThere.wait()
                    inner.wait()
                }
                try! await counter.completed()
                let areCounted = await eventually { isAsCounted("rec-n") }
                precondition(areCounted)
            }
        }

        @Test func `wakes and replacements name workers`() async {
            await #expect(processExitsWith: .success) {
                Recorder.start()
                let scheduler = try! Scheduler(.init(workers: 1, name: "rec-o"))
                let counter = try! CompletionCounter()
                let hasSlept = await eventually {
                    try! scheduler.submit(in: counter) {}  // sooner or later it finds the worker asleep
                    counter.wait()
                    return count(.wake) > 0 && count(.unpark) > 0
                }
                precondition(hasSlept)
                precondition(events().allSatisfy { $0.kind != .wake || $0.number == 0 })
                let sleeps = Recorder.recording().tracks.flatMap { $0.slices() }.filter { $0.kind == .sleep }
                precondition(sleeps.contains { $0.end_ns != nil })
                let (began, leave) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
                try! scheduler.submit(in: counter) {
                    Scheduler.blocking {
                        began.signal()
                        leave.wait()
                    }
                }
                began.wait()
                let isReplaced = await eventually { count(.replace) > 0 }
                precondition(isReplaced)
                precondition(events().allSatisfy { $0.kind != .replace || $0.number == 0 })
                let workers = SchedulerState.all().first { $0.name == "rec-o" }!.workers
                precondition(workers.map(\.index) == workers.map(\.index).sorted() && workers[0].isReplaced)
                precondition(
                    "\(SchedulerState.all().first { $0.name == "rec-o" }!)".contains(
                        ": blocks, and another worker has its place, "))
                precondition(count(.unblock) == 0)
                leave.signal()
                try! await counter.completed()
                precondition(count(.block) == 1 && count(.unblock) == 1)
            }
        }

        @Test func `a body begins at its own time, not at the time of earlier events`() async {
            await #expect(processExitsWith: .success) {
                Recorder.start()
                let scheduler = try! Scheduler(
                    .init(workers: 1, name: "rec-p", capacity: 1, whenFull: .runInCaller, spareWorkers: 0))
                let (began, leave) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
                try! scheduler.submit {
                    began.signal()
                    leave.wait()
                }
                began.wait()
                for _ in 0..<2 { try! scheduler.submit {} }  // one waits, one is run here
                let own = Recorder.recording().tracks.first { $0.name != "rec-p-0" }!.events
                let begin = own.firstIndex { $0.kind == .begin }!
                precondition(own[begin - 1].time_ns < own[begin].time_ns)
                leave.signal()
            }
        }

        @Test func `spans end where they do, of operations and of the program, thrown out of or not`() async {
            await #expect(processExitsWith: .success) {
                struct Thrown: Error {}
                Recorder.start()
                Recorder.span("outer", number: 1) {
                    try? Recorder.span("inner", number: 2) { () throws(Thrown) in throw Thrown() }
                }
                let slices = Recorder.recording().tracks[0].slices()
                precondition(slices.count == 2 && slices.allSatisfy { $0.kind == .span && $0.end_ns != nil })
                let ends = events().filter { $0.kind == .spanEnd }
                precondition(ends.map(\.name) == ["inner", "outer"] && ends.map(\.detail) == [2, 1])
                let single = operation { $0.finish() }
                let isFinished = await single.outcome.isFinished
                precondition(isFinished)
                let isOver = await eventually {
                    events().contains { $0.kind == .spanEnd && "#\($0.detail)" == "\(single.id)" }
                }
                precondition(isOver)
            }
        }

        @Test func `names beyond the limit count as others`() async {
            await #expect(processExitsWith: .success) {
                Recorder.start(eventsPerThread: 1 << 16)
                for number in 0..<10_010 {
                    var options = OperationOptions()
                    options.name = "name \(number)"
                    _ = await operation(options: options) { 1 }.outcome
                }
                let names = events().filter { $0.kind == .spanBegin }.map(\.name)
                precondition(names.contains("name 9999") && !names.contains("name 10001"))
                precondition(names.contains("others"))
            }
        }

        @Test func `starting twice changes nothing, and a start after a stop is an event of its time`()
            async
        {
            await #expect(processExitsWith: .success) {
                Recorder.start()
                Recorder.mark("first")
                Recorder.start()
                Recorder.mark("second")
                precondition(events().map(\.kind) == [.resume, .mark, .mark])
                Recorder.stop()
                Recorder.mark("never")
                Recorder.start()
                Recorder.mark("third")
                let found = events()
                precondition(found.map(\.kind) == [.resume, .mark, .mark, .resume, .mark])
                precondition(found.filter { $0.kind == .mark }.map(\.name) == ["first", "second", "third"])
                precondition(found[3].time_ns > found[2].time_ns)
            }
        }

        @Test func `a thread keeps up to the largest event capacity, and not none`() async {
            await #expect(processExitsWith: .success) {
                Recorder.start(eventsPerThread: .max)
                for _ in 0..<70 { Recorder.mark("again") }
                precondition(Recorder.recording().tracks.map(\.events.count) == [71])
            }
            await #expect(processExitsWith: .failure) { Recorder.start(eventsPerThread: 0) }
        }

        @Test func `a recording of a period begins with it, whatever the time`() async {
            await #expect(processExitsWith: .success) {
                Recorder.start()
                Recorder.mark("early")
                precondition(Recorder.recording(last: .seconds(-1)).tracks.isEmpty)
                precondition(Recorder.recording(last: .seconds(Int64.max)).tracks.count == 1)
                let isThere = await eventually {
                    Recorder.mark("late")
                    return Recorder.recording(last: .milliseconds(900)).tracks.first?.events.last?.name
                        == "late"
                }
                precondition(isThere)
            }
            let track = Track(
                thread: 1, name: "a", events: [1, 2, 3].map { Event(.mark, at: $0) }, lost: 2)
            #expect(track.since(2).map { [$0.events.count, $0.lost] } == [2, 3])
            #expect(track.since(4) == nil)
        }

        // A sanitizer's memory has no such limit.
        @Test(.enabled(if: !isSanitized))
        func `a recording that lacks a track for lack of memory is incomplete`() async {
            await #expect(processExitsWith: .success) {
                Recorder.start(eventsPerThread: .max)
                Recorder.mark("one")
                precondition(Recorder.recording().isComplete)
                var limit = rlimit()
                precondition(getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0)
                limit.rlim_cur = memoryInUse() + 16 << 20
                precondition(setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0)
                let recording = Recorder.recording()
                precondition(recording.tracks.isEmpty && !recording.isComplete)
            }
        }
    }
}

/// The size of the process's address space, in bytes.
func memoryInUse() -> UInt {
    guard let file = fopen("/proc/self/statm", "re") else { return 0 }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 64)
    guard fgets(&line, Int32(line.count), file) != nil else { return 0 }
    return strtoul(line, nil, 10) * UInt(getpagesize())
}
