// StepExecutor.swift - runs the jobs of tasks one at a time, when a test asks for it, in an order that a seed
// decides.

/// A task executor that runs nothing by itself. So a test can see each intermediate state, and each order in
/// which work may proceed can be reproduced.
public final class StepExecutor: TaskExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        var random: UInt64
    }

    private let state: Locked<State>

    /// Creates an executor without jobs.
    ///
    /// - Parameter seed: selects the next of the waiting jobs; 0: the job that has waited longest.
    public init(seed: UInt64 = 0) { state = Locked(State(random: seed)) }

    /// Called by the runtime.
    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        state.withLock { $0.jobs.append(job) }
    }

    /// The number of waiting jobs.
    public var count: Int { state.withLock { $0.jobs.count } }

    /// Runs one of the waiting jobs on the calling thread, up to its next suspension.
    ///
    /// - Returns: false if no job waits.
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

    /// Runs jobs until none waits. With jobs that always create another one, this never returns.
    public func runAll() { while step() {} }
}
