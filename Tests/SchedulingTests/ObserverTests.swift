// The events reported to an observer: each worker's events are those of one life, in order, and a replaced observer is
// released after its last call.

import CScheduler
import PropertyTesting
import PropertyTestingSupport
import Testing

/// The events reported to one observer.
private final class Log: Sendable {
    private struct State {
        var events: [UInt32: [csched_event]] = [:]
        var releases = 0
        var late = 0
    }

    private let state = Locked(State())
    private let react: @Sendable (csched_event) -> Void

    init(react: @escaping @Sendable (csched_event) -> Void = { _ in }) { self.react = react }

    private func note(_ event: csched_event, worker: UInt32) {
        state.withLock { state in
            state.events[worker, default: []].append(event)
            if state.releases > 0 { state.late += 1 }
        }
        react(event)
    }

    /// Events by worker.
    var events: [UInt32: [csched_event]] { state.withLock { $0.events } }
    /// How often the observer was released.
    var releases: Int { state.withLock { $0.releases } }
    /// The number of events after the release.
    var late: Int { state.withLock { $0.late } }

    func count(_ event: csched_event) -> Int {
        events.values.reduce(0) { $0 + $1.count { $0 == event } }
    }

    /// An observer that reports to this log, and retains the log until it is released.
    func observer() -> csched_observer {
        csched_observer(
            notify: { context, event, worker in
                Unmanaged<Log>.fromOpaque(context!).takeUnretainedValue().note(event, worker: worker)
            },
            release: { context in
                let log = Unmanaged<Log>.fromOpaque(context!).takeRetainedValue()
                log.state.withLock { $0.releases += 1 }
            },
            context: Unmanaged.passRetained(self).toOpaque())
    }
}

/// A scheduler by its C interface.
private final class Observed: @unchecked Sendable {
    // Unchecked: the C side synchronises every call but the destruction.
    let handle: OpaquePointer
    private var isDestroyed = false

    /// Without spares, unless a test checks only lives: on a busy machine a worker may look blocked, and its
    /// replacement would be reported, too.
    init(workers: UInt32, spares: UInt32 = 0, name: String = "observed") throws {
        var configuration = csched_configuration_default()
        configuration.workers = workers
        configuration.spares = spares
        var handle: OpaquePointer?
        let status = name.withCString {
            configuration.name = $0
            return csched_scheduler_create(&configuration, &handle)
        }
        try #require(status == .ok)
        self.handle = try #require(handle)
    }

    deinit { destroy() }

    func destroy() {
        if !isDestroyed { csched_scheduler_destroy(handle) }
        isDestroyed = true
    }

    func observe(_ log: Log?) {
        guard var observer = log?.observer() else {
            #expect(csched_scheduler_observe(handle, nil) == .ok)
            return
        }
        #expect(csched_scheduler_observe(handle, &observer) == .ok)
    }

    func resize(_ workers: UInt32) { #expect(csched_scheduler_resize(handle, workers) == .ok) }

    /// Submits `count` operations, and waits until they have run.
    func run(_ count: Int) throws {
        let counter = try #require(csched_completion_create())
        defer { csched_completion_release(counter) }
        let operation = csched_operation(run: { _, _, _ in }, context: nil, extra: nil, counter: counter)
        for _ in 0..<count { #expect(csched_submit(handle, operation) == .ok) }
        try #require(csched_completion_wait(counter, 20_000_000_000) == .completed)
    }

    var parked: UInt64 { csched_scheduler_statistics(handle).parked }
}

/// Whether the events are (STARTED (PARKED UNPARKED)* STOPPED)*: one life after another. `begun`: the first life began
/// before the observer was set, and the worker may have been asleep at that moment.
private func areLives(_ events: [csched_event], begun: Bool) -> Bool {
    enum State { case absent, awake, asleep }
    func walk(from first: State) -> Bool {
        var state = first
        for event in events {
            switch (state, event) {
            case (.absent, .workerStarted), (.asleep, .workerUnparked): state = .awake
            case (.awake, .workerParked): state = .asleep
            case (.awake, .workerStopped): state = .absent
            default: return false
            }
        }
        return state == .absent
    }
    return begun ? walk(from: .awake) || walk(from: .asleep) || walk(from: .absent) : walk(from: .absent)
}

@Suite(.inTurn) struct ObserverTests {
    /// Tests the check itself: the sequences that it must reject.
    @Test func `invalid lives are rejected`() {
        let (start, park, unpark, stop) = (
            csched_event.workerStarted, csched_event.workerParked, csched_event.workerUnparked,
            csched_event.workerStopped
        )
        #expect(areLives([start, stop, start, park, unpark, stop], begun: false))
        #expect(areLives([unpark, stop], begun: true))
        for events in [
            [start], [stop], [start, park, stop], [start, park, park, unpark, stop], [start, start, stop],
            [start, unpark, stop], [start, stop, stop], [park, unpark, stop],
        ] {
            #expect(!areLives(events, begun: false))
        }
    }

    @Test func `an observer is released only when its scheduler is destroyed`() throws {
        let log = Log()
        let scheduler = try Observed(workers: 2)
        scheduler.observe(log)
        try scheduler.run(10)
        #expect(log.releases == 0)
        scheduler.destroy()
        #expect(log.releases == 1)
        #expect(log.count(.workerStopped) == 2)
        #expect(log.late == 0)
    }

    @Test func `a removed observer is notified no more`() throws {
        let log = Log()
        let scheduler = try Observed(workers: 1)
        scheduler.observe(log)
        scheduler.observe(nil)
        #expect(eventually { log.releases == 1 })
        let before = log.events
        for _ in 0..<3 {
            let parked = scheduler.parked
            try scheduler.run(1)
            #expect(eventually { scheduler.parked > parked })
        }
        #expect(log.events == before)
        scheduler.destroy()
        #expect(log.releases == 1)
        #expect(log.late == 0)
    }

    /// The release function may be NULL: then the observer does not own the context.
    @Test func `an observer without a context needs no release`() throws {
        let scheduler = try Observed(workers: 1)
        for _ in 0..<10 {
            var observer = csched_observer(notify: { _, _, _ in }, release: nil, context: nil)
            #expect(csched_scheduler_observe(scheduler.handle, &observer) == .ok)
            try scheduler.run(1)
        }
    }

    /// O1 of observer.c. The second observer is replaced after the first, so its release shows that a grace period has
    /// passed.
    @Test func `an observer is not released while it is being called`() throws {
        let scheduler = try Observed(workers: 1)
        let (called, gate) = (Gate(), Gate())
        let (first, second) = (
            Log { event in
                guard event == .workerStarted else { return }
                called.open()
                gate.wait()
            }, Log()
        )
        scheduler.observe(first)
        scheduler.resize(2)
        called.wait()
        scheduler.observe(second)
        scheduler.observe(nil)
        #expect(eventually { second.releases == 1 })
        #expect(first.releases == 0)
        gate.open()
        #expect(eventually { first.releases == 1 })
    }

    /// Reported as often as the statistics count, once all is quiet.
    @Test func `each parking is reported`() throws {
        let scheduler = try Observed(workers: 1, name: "parking-t")
        let log = Log()
        // The worker is asleep, and so past the call that would report its parking.
        #expect(eventually { scheduler.parked == 1 })
        #expect(eventually { KernelThread.named("parking-t").count(where: \.isAsleep) == 1 })
        scheduler.observe(log)
        for round in 1...20 {
            try scheduler.run(1)
            try #require(eventually { scheduler.parked == UInt64(1 + round) })
            try #require(eventually { log.count(.workerParked) == round })
            #expect(log.count(.workerUnparked) == round || log.count(.workerUnparked) == round + 1)
        }
    }

    /// S15: an observer is called outside every read section and lock, so it may call everything that a body may.
    @Test func `an observer replaces itself, asks for statistics and resizes`() throws {
        let scheduler = try Observed(workers: 2)
        let second = Log()
        let done = Count()
        let first = Log { [weak scheduler] event in
            guard event == .workerStarted, let scheduler else { return }
            scheduler.observe(second)
            #expect(csched_scheduler_statistics(scheduler.handle).workers >= 1)
            done.add()
        }
        scheduler.observe(first)
        scheduler.resize(3)
        #expect(eventually { done.value >= 1 && first.releases == 1 })
        try scheduler.run(10)
        scheduler.destroy()
        #expect(second.releases == done.value)  // each call replaced one observer
        #expect(first.late == 0)
        #expect(second.count(.workerStopped) == 3)
    }

    /// S15, S3: an operation that is submitted while its worker falls asleep or wakes up runs all the same.
    @Test(
        arguments: [csched_event.workerStarted, .workerUnparked, .workerParked], [UInt32(1), 3])
    func `observers' submissions run`(event: csched_event, workers: UInt32) throws {
        let scheduler = try Observed(workers: workers)
        // Unsafe: the C side synchronises every call.
        nonisolated(unsafe) let (handle, counter) = (
            scheduler.handle, try #require(csched_completion_create())
        )
        let submitted = Count()
        let log = Log { told in
            guard told == event, submitted.value < 5 else { return }
            let operation = csched_operation(run: { _, _, _ in }, context: nil, extra: nil, counter: counter)
            #expect(csched_submit(handle, operation) == .ok)
            submitted.add()
        }
        scheduler.observe(log)
        scheduler.resize(workers + 1)
        for _ in 0..<10 { try scheduler.run(2) }
        #expect(eventually { submitted.value >= 1 })
        #expect(csched_completion_wait(counter, 20_000_000_000) == .completed)
        scheduler.destroy()
        csched_completion_release(counter)
    }
}

extension Stress {
    @Suite(.inTurn) struct Observers {
        /// Workers start, sleep, wake and stop as a program says: positive numbers resize, negative ones submit.
        @Test func `each worker's events form valid lives`() async {
            let steps = Generator<Int>.oneOf([.int(in: 1...5), .int(in: -20 ... -1)])
            await forAll(
                steps.array(count: 1...25), cases: scaled(150),
                covering: [.cover(50, "shrinks") { zip($0, $0.dropFirst()).contains { 0 < $1 && $1 < $0 } }]
            ) { program in
                let scheduler = try Observed(workers: 1, spares: 3)
                let log = Log()
                scheduler.observe(log)
                for step in program {
                    if step > 0 { scheduler.resize(UInt32(step)) } else { try scheduler.run(-step) }
                }
                scheduler.destroy()
                for (worker, events) in log.events {
                    try #require(areLives(events, begun: worker == 0), "worker \(worker): \(events)")
                }
                try #require(log.count(.workerStopped) >= 1)
                try #require(log.releases == 1 && log.late == 0)
            }
        }

        /// Threads replace the observer while workers call it: each observer is released once, after its last call,
        /// and at a replacement no event is lost or reported twice.
        @Test func `observers that are replaced are released once, after their last call`() throws {
            let scheduler = try Observed(workers: 2)
            let logs = concurrently(3) { thread -> [Log] in
                (0..<scaled(2000)).map { _ in
                    if thread == 2 {
                        do { try scheduler.run(3) } catch { Issue.record(error) }
                    }
                    let log = Log()
                    if thread != 2 { scheduler.observe(log) }
                    return log
                }
            }
            scheduler.destroy()
            let observers = logs[0] + logs[1]
            #expect(observers.allSatisfy { $0.releases == 1 })
            #expect(observers.allSatisfy { $0.late == 0 })
            #expect(observers.reduce(0) { $0 + $1.count(.workerStopped) } == 2)
        }
    }
}
