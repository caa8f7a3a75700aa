/// Finds stalls by comparing samples of the schedulers, at no cost to operations.
///
/// A body has run since a sample at which its worker was in a body and had executed as many bodies as now. An operation from
/// outside has waited since a sample by which more had been submitted than have been taken by now. An operation in the
/// queues of a worker has waited, while the worker's body runs, since a sample after which nothing was taken from those
/// queues.
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

    /// New stalls since the last sample; each is reported once, until it is over.
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

/// How many operations had been submitted to a queue at which times.
private struct QueueHistory {
    private var looks: [(submitted: Int, at: ContinuousClock.Instant)] = []
    private var isTold = false

    /// How long the oldest operation has waited, once this reaches the limit; reported once.
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
