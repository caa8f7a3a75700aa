// StepExecutor.swift - runs the jobs of tasks one at a time, when a test says so, in an order that a seed decides.

/// An executor for tasks, which does nothing by itself: so a test sees each state in between, and each order in
/// which work may go on can be had again.
public final class StepExecutor: TaskExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        var random: UInt64
    }

    private let state: Locked<State>

    /// Creates one without jobs.
    ///
    /// - Parameter seed: decides which of the waiting jobs is next; 0: the one that waits longest.
    public init(seed: UInt64 = 0) { state = Locked(State(random: seed)) }

    /// For the runtime.
    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        state.withLock { $0.jobs.append(job) }
    }

    /// How many jobs wait.
    public var count: Int { state.withLock { $0.jobs.count } }

    /// Runs one of the waiting jobs on the calling thread, up to where it waits itself.
    ///
    /// - Returns: false: none waits.
    @discardableResult public func step() -> Bool {
        let job = state.withLock { state -> UnownedJob? in
            guard !state.jobs.isEmpty else { return nil }
            guard state.random != 0 else { return state.jobs.removeFirst() }
            // Marsaglia, Xorshift RNGs (2003).
            state.random ^= state.random << 13
            state.random ^= state.random >> 7
            state.random ^= state.random << 17
            return state.jobs.remove(at: Int(state.random % UInt64(state.jobs.count)))
        }
        guard let job else { return false }
        job.runSynchronously(on: asUnownedTaskExecutor())
        return true
    }

    /// Runs jobs until none waits. A job that always makes another one is run for ever.
    public func runAll() { while step() {} }
}
