internal import CScheduler

/// A scheduler's counts since it was created, for readers that compute increments between readings.
package struct SchedulerCounts: Sendable {
    package let id: Int
    package let name: String
    package let executed: Int
    package let cancelled: Int
    package let stolen: Int
    package let parked: Int
    package let woken: Int
    package let replaced: Int
    package let exhausted: Int

    /// The counts of all schedulers of the process, the newest first, each read at its own moment.
    ///
    /// - Complexity: O(workers + threads that submit).
    package static func all() -> [SchedulerCounts] {
        var counts: [SchedulerCounts] = []
        withUnsafeMutablePointer(to: &counts) { counts in
            csched_visit_schedulers(
                { context, scheduler in
                    let counts = context!.assumingMemoryBound(to: [SchedulerCounts].self)
                    counts.pointee.append(SchedulerCounts(scheduler))
                }, counts)
        }
        return counts
    }

    private init(_ scheduler: OpaquePointer) {
        var state = csched_scheduler_state()
        csched_scheduler_inspect(scheduler, &state, nil, 0)
        let counts = csched_scheduler_statistics(scheduler)
        id = Int(clamping: state.id)
        name = withUnsafeBytes(of: state.name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        executed = Int(clamping: counts.executed)
        cancelled = Int(clamping: counts.cancelled)
        stolen = Int(clamping: counts.stolen)
        parked = Int(clamping: counts.parked)
        woken = Int(clamping: counts.woken)
        replaced = Int(clamping: counts.replaced)
        exhausted = Int(clamping: counts.exhausted)
    }
}
