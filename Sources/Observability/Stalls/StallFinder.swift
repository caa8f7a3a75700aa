/// Finds stalls by comparing samples of the schedulers, at no cost to operations.
///
/// A worker's body is known to run since the earliest sample in which the worker was in a body and its count of executed
/// bodies was the present one. An operation submitted from outside is known to wait since the earliest sample whose count of
/// submitted operations exceeds the present count of taken ones. An operation in a worker's own queues is known to wait since
/// the earliest sample that found operations there, if the same body still runs and nothing was taken from these queues since.
struct StallFinder {
    private struct Body {
        let executed: Int
        let since: ContinuousClock.Instant
        var isTold = false
        var waiting = 0
        var waitsSince: ContinuousClock.Instant?
        var isWaitTold = false
    }

    private struct Key: Hashable {
        let scheduler: Int
        let part: String
    }

    let bodyLimit: Duration
    let waitLimit: Duration
    let readsStacks: Bool
    private var bodies: [Key: Body] = [:]
    private var queues: [Key: QueueHistory] = [:]

    init(bodyLimit: Duration, waitLimit: Duration, readsStacks: Bool) {
        self.bodyLimit = bodyLimit
        self.waitLimit = waitLimit
        self.readsStacks = readsStacks
    }

    /// The stalls that this sample reveals. A stall is reported once, and not again while it lasts.
    mutating func look(at schedulers: [SchedulerState], at now: ContinuousClock.Instant) -> [Stall] {
        var stalls: [Stall] = []
        var seen: Set<Key> = []
        for scheduler in schedulers {
            for worker in scheduler.workers {
                let key = Key(scheduler: scheduler.id, part: "\(worker.index)")
                seen.insert(key)
                stalls += look(at: worker, of: scheduler, key, now)
            }
            // In a suspended scheduler, operations wait for a resume, not for a worker.
            for queue in scheduler.queues where !scheduler.isSuspended {
                let key = Key(scheduler: scheduler.id, part: queue.priority)
                seen.insert(key)
                let duration = queues[key, default: QueueHistory()].note(queue, now, limit: waitLimit)
                if let duration {
                    stalls.append(
                        Stall(
                            kind: .wait(
                                queue: "the inboxes of \(queue.priority) priority", waiting: queue.waiting),
                            scheduler: scheduler.name, duration: duration))
                }
            }
        }
        bodies = bodies.filter { seen.contains($0.key) }
        queues = queues.filter { seen.contains($0.key) }
        return stalls
    }

    private mutating func look(
        at worker: SchedulerState.Worker, of scheduler: SchedulerState, _ key: Key,
        _ now: ContinuousClock.Instant
    ) -> [Stall] {
        guard worker.isInBody else {
            bodies[key] = nil
            return []
        }
        var body = bodies[key] ?? Body(executed: worker.executed, since: now)
        if body.executed != worker.executed { body = Body(executed: worker.executed, since: now) }
        if worker.waiting == 0 || worker.waiting < body.waiting || scheduler.isSuspended {
            body.waitsSince = nil
            body.isWaitTold = false
        }
        if worker.waiting > 0, body.waitsSince == nil, !scheduler.isSuspended { body.waitsSince = now }
        body.waiting = worker.waiting
        var stalls: [Stall] = []
        if !body.isTold, now - body.since >= bodyLimit {
            body.isTold = true
            let stack = readsStacks ? ThreadStack(of: worker.thread) : nil
            stalls.append(
                Stall(
                    kind: .body(worker: worker, stack: stack), scheduler: scheduler.name,
                    duration: now - body.since))
        }
        if let since = body.waitsSince, !body.isWaitTold, now - since >= waitLimit {
            body.isWaitTold = true
            stalls.append(
                Stall(
                    kind: .wait(queue: "the queues of worker \(worker.index)", waiting: worker.waiting),
                    scheduler: scheduler.name, duration: now - since))
        }
        bodies[key] = body
        return stalls
    }
}

/// Samples of a queue's count of submitted operations, each with its time.
private struct QueueHistory {
    private var looks: [(submitted: Int, at: ContinuousClock.Instant)] = []
    private var isTold = false

    /// How long the oldest operation has waited, if that has reached the limit and was not reported yet; otherwise nil.
    mutating func note(_ queue: SchedulerState.Queue, _ now: ContinuousClock.Instant, limit: Duration)
        -> Duration?
    {
        let taken = queue.submitted - queue.waiting
        looks.removeAll { $0.submitted <= taken }
        if looks.isEmpty { isTold = false }
        if queue.waiting > 0, looks.last?.submitted != queue.submitted {
            looks.append((queue.submitted, now))
        }
        guard let oldest = looks.first, now - oldest.at >= limit, !isTold else { return nil }
        isTold = true
        return now - oldest.at
    }
}
