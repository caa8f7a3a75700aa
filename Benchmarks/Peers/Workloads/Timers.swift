import BenchmarkCore
import Dispatch

/// Timers of one sample.
protocol TimerForm: Sendable {
    associatedtype Timer: Sendable

    /// Sets a timer that runs a job after `delay_ns`, once.
    func set(_ delay_ns: Int, _ job: some Job) -> Timer

    /// Cancels a pending timer.
    func cancel(_ timer: Timer)

    /// Calls `body` where setting timers costs least; returns after the call.
    func perform(_ body: @escaping @Sendable () -> Void)

    /// Returns when all timers that were set are pending.
    func waitUntilPending()

    /// Discards pending timers; may defer that until the sample ends.
    func discard(_ timers: [Timer])

    /// Returns when nothing is left of cancelled timers.
    func settle(_ timers: [Timer])
}

extension TimerForm {
    func perform(_ body: @escaping @Sendable () -> Void) { body() }

    func waitUntilPending() {}

    func discard(_ timers: [Timer]) { for timer in timers { cancel(timer) } }

    func settle(_ timers: [Timer]) {}
}

/// W27.
func timers(_ workload: String, n: Int, _ form: some TimerForm) -> Sample {
    switch workload {
    case "W27-set", "W27-cancel": pendingTimers(workload, count: n, form)
    case "W27-fire": firing(count: n, form)
    default: lateness(count: n, form)
    }
}

/// Timers that never fire: set, and then cancelled. The checksum lacks a mark for each timer that fires nevertheless.
private func pendingTimers<Form: TimerForm>(_ workload: String, count: Int, _ form: Form) -> Sample {
    let hour_ns = 3_600_000_000_000
    let slots = Slots(count: count)
    let pending = PendingTimers<Form.Timer>()
    pending.timers.reserveCapacity(count)
    form.perform {
        if workload == "W27-set" { pending.start = startClock() }
        for index in 0..<count {
            pending.timers.append(form.set(hour_ns, Mark(slots: slots, index: index)))
        }
    }
    form.waitUntilPending()
    if workload == "W27-set" {
        pending.stop = stopClock()
        form.discard(pending.timers)
    } else {
        cancelInTurn(pending, form)
    }
    form.settle(pending.timers)
    let checksum = slots.values.enumerated().reduce(UInt64(0)) { sum, slot in
        slot.element == 0 ? sum &+ Workload.mark(slot.offset) : sum
    }
    return Sample(from: pending.start, to: pending.stop, operations: count, checksum: checksum)
}

/// Cancels timers in a different order from that in which they were set.
private func cancelInTurn<Form: TimerForm>(_ pending: PendingTimers<Form.Timer>, _ form: Form) {
    let count = pending.timers.count
    form.perform {
        let step = count % 7_919 == 0 ? 7_907 : 7_919  // a prime that does not divide `count`
        pending.start = startClock()
        for turn in 0..<count { form.cancel(pending.timers[turn &* step % count]) }
        pending.stop = stopClock()
    }
}

/// Timers that are due at the same time. A timer that fires early makes the result wrong.
private func firing(count: Int, _ form: some TimerForm) -> Sample {
    let slots = Slots(count: count)
    let left = Countdown(count)
    // Counting begins here, with the setting of the timers; the measured time begins only when they are due.
    let due = startClock() + Workload.untilDue_ns(timers: count)
    form.perform {
        for index in 0..<count {
            let job = DueMark(mark: Mark(slots: slots, index: index), due: due, left: left)
            _ = form.set(max(0, due - now_ns()), job)
        }
    }
    left.wait()
    let stop = stopClock()
    return Sample(from: due, to: max(stop, due + 1), operations: count, checksum: slots.checksum)
}

/// Sendable: `perform` returns only after its body has.
private final class PendingTimers<Timer>: @unchecked Sendable {
    var timers: [Timer] = []
    var start = 0
    var stop = 0
}

private struct DueMark: Job {
    let mark: Mark
    let due: Int
    unowned(unsafe) let left: Countdown  // the waiter keeps it alive

    func run() {
        if now_ns() >= due { mark.run() }
        left.leave()
    }
}

/// Successive timers, all set at the beginning.
private func lateness(count: Int, _ form: some TimerForm) -> Sample {
    let timed = TimedMarks(count: count)
    let first = now_ns() + 5_000_000
    @Sendable func due(_ index: Int) -> Int { first + index * 2_300_000 }
    form.perform {
        for index in 0..<count { _ = form.set(due(index) - now_ns(), timed[index]) }
    }
    timed.wait()
    let stop = now_ns()
    var sample = Sample(from: first, to: stop, operations: count, checksum: timed.marks.checksum)
    sample.latencies_ns = timed.latencies(due)
    return sample
}

/// A sleeping task for each timer.
final class TaskTimers: TimerForm {
    private let executor: (any TaskExecutor)?
    private let asleep: Countdown

    /// - Parameter executor: where the tasks run; nil: the default executor.
    init(count: Int, on executor: (any TaskExecutor)?) {
        self.executor = executor
        asleep = Countdown(count)
    }

    func set(_ delay_ns: Int, _ job: some Job) -> Task<Void, Never> {
        let due = ContinuousClock.now + .nanoseconds(delay_ns)
        // The waiting thread keeps `asleep` alive. A reference here would make all threads update a count on
        // one cache line.
        return Task.detached(executorPreference: executor) { [unowned(unsafe) asleep] in
            asleep.leave()
            if (try? await Task.sleep(until: due)) != nil { job.run() }
        }
    }

    func cancel(_ timer: Task<Void, Never>) { timer.cancel() }

    func waitUntilPending() { asleep.wait() }

    func settle(_ timers: [Task<Void, Never>]) {
        let done = DispatchSemaphore(value: 0)
        Task.detached {
            for timer in timers { await timer.value }
            done.signal()
        }
        done.wait()
    }
}

/// A source for each timer: `asyncAfter` may be late by a tenth of its delay, and cannot be cancelled.
///
/// Sendable: a queue is Sendable.
struct DispatchTimers: TimerForm, @unchecked Sendable {
    private let queue = DispatchQueue(label: "timers")

    /// Sendable: its calls are synchronised.
    struct Timer: @unchecked Sendable { let source: any DispatchSourceTimer }

    func set(_ delay_ns: Int, _ job: some Job) -> Timer {
        let source = DispatchSource.makeTimerSource(flags: .strict, queue: queue)
        source.schedule(deadline: .now() + .nanoseconds(delay_ns), leeway: .nanoseconds(0))
        // The handler keeps the source until it has run.
        source.setEventHandler {
            job.run()
            source.cancel()
        }
        source.activate()
        return Timer(source: source)
    }

    func cancel(_ timer: Timer) { timer.source.cancel() }

    func settle(_ timers: [Timer]) { queue.sync {} }
}
