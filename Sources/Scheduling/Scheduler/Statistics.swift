internal import CScheduler

extension Scheduler {
    /// Counts since the scheduler was created. They are exact when the scheduler is quiescent; while it is
    /// busy, each is read at a different moment.
    public struct Statistics: Hashable, Sendable {
        /// Operations accepted, from outside and from workers.
        public let submitted: Int
        /// Bodies that have returned.
        public let executed: Int
        /// Operations that were cancelled by a shutdown.
        public let cancelled: Int
        /// Operations that a worker took from another worker.
        public let stolen: Int
        /// Times a worker went to sleep.
        public let parked: Int
        /// Wake-ups that were sent.
        public let woken: Int
        /// Queues, buffers and snapshots that were retired, to be freed after a grace period.
        public let retired: Int
        /// Retired objects that have been freed.
        public let reclaimed: Int
        /// Workers inside a body, or about to search for the next one.
        public let running: Int

        /// Workers that blocked and were replaced by another worker.
        public let replaced: Int
        /// Times a spare worker was needed beyond the number that ``Configuration/spareWorkers`` allows.
        public let exhausted: Int
        /// Worker threads now: in service, blocked, or in reserve for the next worker that blocks.
        public let threads: Int

        /// Operations accepted that have not ended.
        public var pending: Int { max(0, submitted - executed - cancelled) }

        init(_ counts: csched_statistics) {
            submitted = Int(clamping: counts.submitted)
            executed = Int(clamping: counts.executed)
            cancelled = Int(clamping: counts.cancelled)
            stolen = Int(clamping: counts.stolen)
            parked = Int(clamping: counts.parked)
            woken = Int(clamping: counts.woken)
            retired = Int(clamping: counts.retired)
            reclaimed = Int(clamping: counts.reclaimed)
            running = Int(clamping: counts.running)
            replaced = Int(clamping: counts.replaced)
            exhausted = Int(clamping: counts.exhausted)
            threads = Int(clamping: counts.threads)
        }
    }
}
