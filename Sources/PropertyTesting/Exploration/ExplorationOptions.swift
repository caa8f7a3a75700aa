/// Options that select the schedules of a body to run.
///
/// Schedules with no departure from the usual order are run first, then those with one, and so on: most concurrency
/// faults show up with two or three. Source: Emmi, Qadeer, Rakamaric, Delay-Bounded Scheduling (2011); Musuvathi,
/// Qadeer, Iterative Context Bounding (2007).
public struct ExplorationOptions: Sendable {
    /// The maximum number of departures of a schedule; nil: as many as it has decisions. Without effect with
    /// ``Sharing/actors``.
    public var departures: Int?
    /// The state that tasks share; of schedules that differ only in ways that do not affect that state, one is run.
    public var sharing: Sharing
    /// The maximum number of schedules that the search runs.
    public var limit: Int
    /// The number of additional random schedules, if the search did not cover all: they follow task priorities that
    /// change at ``depth`` - 1 random steps (Burckhardt, Kothari, Musuvathi, Nagarakatte, A Randomized Scheduler with
    /// Probabilistic Guarantees of Finding Bugs, 2010).
    public var random: Int
    /// The number of steps that must be in a certain order for the faults that ``random`` looks for.
    public var depth: Int
    /// The seed of the random schedules.
    public var seed: UInt64
    /// The maximum number of steps of a schedule; a longer one counts as endless.
    public var steps: Int
    /// The only schedule to run.
    public var replay: Schedule?

    /// Creates options.
    public init(
        departures: Int? = 3, limit: Int = 100_000, random: Int = 1_000, depth: Int = 3, seed: UInt64 = 1,
        steps: Int = 10_000, sharing: Sharing = .anything, replay: Schedule? = nil
    ) {
        self.departures = departures
        self.sharing = sharing
        self.limit = limit
        self.random = random
        self.depth = depth
        self.seed = seed
        self.steps = steps
        self.replay = replay
    }
}
