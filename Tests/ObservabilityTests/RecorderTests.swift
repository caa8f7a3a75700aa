import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import Glibc
import Observability
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Synchronization
import Testing

/// Runs a body on a dedicated thread.
private func onOwnThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) -> Value {
    let value = Locked<Value?>(nil)
    let thread = startThread(for: "a test") {
        let result = body()
        value.withLock { $0 = result }
    }
    pthread_join(thread, nil)
    return value.withLock { $0! }
}

private func isRefused(_ submit: () throws -> Void) -> Bool {
    do { try submit() } catch { return true }
    return false
}

/// The recorder belongs to the process, so one test at a time uses it. Threads of other tests have tracks, too, and may reuse
/// the rings of threads that have ended.
@Suite(.inTurn, .serialized) enum OneRecorder {}

extension OneRecorder {
    @Suite struct RecorderTests {
        /// Records the events of a scheduler with this name while `body` uses it.
        private func record(
            _ name: String, _ body: (Scheduler) throws -> Void
        ) throws -> [Recording.Track] {
            Recorder.start()
            defer { Recorder.stop() }
            // Without spares: while a body blocks, no worker takes its place.
            let scheduler = try Scheduler(.init(workers: 1, name: name, spareWorkers: 0))
            try body(scheduler)
            let last = try CompletionCounter()
            try scheduler.submit(in: last) {}
            last.wait()  // one worker: all earlier operations have ended
            let tracks = Recorder.recording().tracks.filter { $0.name.hasPrefix(name + "-") }
            try scheduler.shutdown()
            return tracks
        }

        @Test func `an operation is handed over, begins and ends`() throws {
            let gate = Gate()
            let tracks = try record("rec-a") { scheduler in
                try scheduler.submit { gate.wait() }
                gate.open()
            }
            let track = try #require(tracks.first)
            let kinds = track.events.map(\.kind)
            #expect(kinds.filter { $0 == .begin }.count == 2)
            #expect(kinds.filter { $0 == .end }.count >= 1)
            #expect(kinds.contains(.park) || kinds.contains(.search))
            let times = track.events.map(\.time_ns)
            #expect(times == times.sorted())
            #expect(track.lost == 0)
        }

        // In its own process: handovers are known only since any thread last lost events, and the threads of other tests keep
        // losing events.
        @Test func `each begin has its submission`() async {
            await #expect(processExitsWith: .success) {
                let count = 500
                Recorder.start()
                let scheduler = try Scheduler(.init(workers: 2, name: "rec-b"))
                let counter = try CompletionCounter()
                for number in 0..<count { try scheduler.submit(in: counter) { _ = number } }
                try await counter.completed()
                let recording = Recorder.recording()
                Recorder.stop()
                try await scheduler.shutdown()
                let begun = recording.handovers().filter {
                    recording.tracks[$0.begun.track].name.hasPrefix("rec-b-")
                }
                #expect(begun.count == count)
                #expect(
                    begun.allSatisfy { recording[$0.submitted].time_ns <= recording[$0.begun].time_ns })
            }
        }

        @Test func `nothing is recorded while it is off`() throws {
            let tracks = try record("rec-c") { _ in Recorder.stop() }
            #expect(!Recorder.isOn)
            #expect(tracks.allSatisfy { track in !track.events.contains { $0.kind == .begin } })
        }

        // In its own process: here the thread might get the larger ring of a thread that has ended.
        @Test func `the newest events replace the oldest, and are counted`() async {
            await #expect(processExitsWith: .success) {
                Recorder.start(eventsPerThread: 64)
                for _ in 0..<200 { Recorder.mark("again") }
                let track = Recorder.recording().tracks[0]
                precondition(track.events.count == 63)
                precondition(track.lost == 138)  // the first event is the recorder's start
                precondition(track.events.allSatisfy { $0.kind == .mark && $0.name == "again" })
            }
        }

        @Test func `a blocking body, one inside a wait, and a steal are slices`() throws {
            let tracks = try record("rec-d") { scheduler in
                let counter = try CompletionCounter()
                try scheduler.submit {
                    try! scheduler.submit(in: counter) {}
                    counter.wait()
                    Scheduler.blocking {}
                }
            }
            let slices = try #require(tracks.first).slices()
            let bodies = slices.filter { $0.kind == .body }
            #expect(bodies.count == 3)
            let outer = try #require(bodies.first), inner = try #require(bodies.dropFirst().first)
            #expect(outer.begin_ns <= inner.begin_ns)
            #expect(try #require(inner.end_ns) <= #require(outer.end_ns))
            let block = try #require(slices.last { $0.kind == .block })
            #expect(block.begin_ns >= outer.begin_ns)
            #expect(try #require(block.end_ns) <= #require(outer.end_ns))
        }

        // In its own process: threads that end here pass their rings on to others.
        @Test func `a refusal, a cancellation and a timer are events`() async {
            await #expect(processExitsWith: .success) {
                Recorder.start()
                let scheduler = try! Scheduler(.init(workers: 1, name: "rec-e", spareWorkers: 0))
                let (began, leave) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
                let fired = DispatchSemaphore(value: 0)
                _ = try! scheduler.submit(after: .milliseconds(1)) { fired.signal() }
                fired.wait()
                try! scheduler.submit {
                    began.signal()
                    leave.wait()
                }
                began.wait()
                try! scheduler.submit {}
                _ = concurrently(2) { thread in
                    if thread == 0 {
                        try! scheduler.shutdown(.cancelPending)
                    } else {
                        while !isRefused({ try scheduler.submit {} }) {}
                        leave.signal()
                    }
                }
                let kinds = Set(Recorder.recording().tracks.flatMap(\.events).map(\.kind))
                precondition(kinds.isSuperset(of: [.refuse, .cancel, .timer, .submit]))
            }
        }

        @Test func `the last threads that ended are kept`() async {
            await #expect(processExitsWith: .success) {
                Recorder.start(eventsPerThread: 64)
                for number in 0..<200 as Range<UInt64> {
                    onOwnThread { Recorder.span("short", number: number) {} }
                }
                let numbers = Recorder.recording().tracks.compactMap { $0.events.last?.detail }
                precondition(numbers.count == 64)
                precondition(Set(numbers) == Set(136..<200))
            }
        }

        @Test func `events from before a pause have no end in it, and no slice spans it`() async {
            await #expect(processExitsWith: .success) {
                Recorder.start()
                let scheduler = try! Scheduler(.init(workers: 1, name: "rec-g"))
                let (began, leave) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
                try! scheduler.submit {
                    began.signal()
                    leave.wait()
                }
                began.wait()
                Recorder.start()  // already on
                Recorder.stop()
                leave.signal()
                let last = try! CompletionCounter()
                try! scheduler.submit(in: last) {}
                try! await last.completed()
                Recorder.start()
                try! scheduler.submit(in: last) {}
                try! await last.completed()
                let track = Recorder.recording().tracks.first { $0.name == "rec-g-0" }!
                let bodies = track.slices().filter { $0.kind == .body }
                precondition(bodies.count == 2)
                precondition(bodies[0].end_ns! <= bodies[1].begin_ns)
                precondition(track.events.count { $0.kind == .resume } == 2)
                let lately = Recorder.recording(last: .seconds(3_600))
                precondition(lately.tracks.count == Recorder.recording().tracks.count)
                precondition(Recorder.recording(last: .zero).tracks.isEmpty)
            }
        }

        @Test func `a body that its submitter runs is on the submitter's track`() async {
            await #expect(processExitsWith: .success) {
                Recorder.start()
                let scheduler = try! Scheduler(
                    .init(workers: 1, name: "rec-h", capacity: 1, whenFull: .runInCaller, spareWorkers: 0))
                let (began, leave) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
                try! scheduler.submit {
                    began.signal()
                    leave.wait()
                }
                began.wait()
                for _ in 0..<3 { try! scheduler.submit {} }  // one waits, two are run here
                let own = Recorder.recording().tracks.first { $0.name != "rec-h-0" }!
                leave.signal()
                precondition(own.slices().count { $0.kind == .body && $0.end_ns != nil } == 2)
            }
        }

        @Test func `a worker that blocks is replaced, and one that sleeps is woken`() async {
            await #expect(processExitsWith: .success) {
                func has(_ kind: Recording.Kind) -> Bool {
                    Recorder.recording().tracks.contains { $0.events.contains { $0.kind == kind } }
                }
                Recorder.start()
                let scheduler = try! Scheduler(.init(workers: 1, name: "rec-i"))
                let isWoken = await eventually {
                    try! scheduler.submit {}  // sooner or later it finds the worker asleep
                    return has(.wake)
                }
                precondition(isWoken)
                let (began, leave) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
                try! scheduler.submit {
                    Scheduler.blocking {
                        began.signal()
                        leave.wait()
                    }
                }
                began.wait()
                try! scheduler.submit {}
                let isReplaced = await eventually { has(.replace) }
                leave.signal()
                precondition(isReplaced && has(.block))
            }
        }

        @Test func `a body begins after what was recorded before`() throws {
            let tracks = try record("rec-j") { scheduler in
                let counter = try CompletionCounter()
                for _ in 0..<100 {
                    try scheduler.submit(in: counter) {}
                    counter.wait()
                }
            }
            let track = try #require(tracks.first)
            // Between two bodies the worker searches for the next one, or sleeps, which takes time.
            let searches = track.slices().filter { $0.kind == .search && $0.end_ns != nil }
            #expect(searches.contains { $0.end_ns! > $0.begin_ns })
        }

        @Test func `the block of an operation is a span, with its name and number`() async throws {
            Recorder.start()
            defer { Recorder.stop() }
            // On a dedicated worker: operations of other tests would fill the ring of a shared worker.
            let scheduler = try Scheduler(.init(workers: 1, name: "rec-h"))
            var options = OperationOptions()
            options.name = "named for the recorder"
            let named = operation(on: scheduler, options: options) { $0.finish() }
            #expect(await named.outcome.isFinished)
            let unnamed = operation(on: scheduler) { $0.finish() }
            #expect(await unnamed.outcome.isFinished)
            let events = Recorder.recording().tracks.flatMap(\.events)
            #expect(
                events.contains { $0.kind == .begin && $0.operation?.function == "turn of an operation" })
            let spans = events.filter { $0.kind == .spanBegin }
            #expect(spans.contains { $0.name == options.name && "#\($0.detail)" == "\(named.id)" })
            #expect(spans.contains { $0.name == "COOperation<()>" && "#\($0.detail)" == "\(unnamed.id)" })
        }

        @Test func `reading works alongside writing threads`() throws {
            let rounds = max(1, Int(200 * stressScale))
            Recorder.start(eventsPerThread: 64)
            let scheduler = try Scheduler(.init(workers: 2, name: "rec-f"))
            let isOver = Atomic(false)
            _ = concurrently(2) { thread in
                if thread == 0 {
                    while !isOver.load(ordering: .acquiring) {
                        let counter = try! CompletionCounter()
                        for _ in 0..<50 { try! scheduler.submit(in: counter) {} }
                        counter.wait()
                    }
                } else {
                    for _ in 0..<rounds {
                        for track in Recorder.recording().tracks where track.name.hasPrefix("rec-f-") {
                            #expect(track.events.map(\.time_ns) == track.events.map(\.time_ns).sorted())
                        }
                    }
                    isOver.store(true, ordering: .releasing)
                }
            }
            Recorder.stop()
            try scheduler.shutdown()
        }
    }
}
