/// Which schedules of a body are run.
///
/// First those with no departure from the usual order, then those with one, and so on: most faults of concurrent code
/// show with two or three. Source: Emmi, Qadeer, Rakamaric, Delay-Bounded Scheduling (2011); Musuvathi, Qadeer,
/// Iterative Context Bounding (2007).
public struct ExplorationOptions: Sendable {
    /// How many departures a schedule may have; nil: as many as it has decisions. Without effect with ``Sharing/actors``.
    public var departures: Int?
    /// The state that tasks share: of schedules that differ in nothing else, one is run.
    public var sharing: Sharing
    /// How many of these schedules are run at most.
    public var limit: Int
    /// How many schedules are drawn beside these, when they were not all that there are: by priorities of tasks that
    /// change at ``depth`` - 1 random steps (Burckhardt, Kothari, Musuvathi, Nagarakatte, A Randomized Scheduler with
    /// Probabilistic Guarantees of Finding Bugs, 2010).
    public var random: Int
    /// How many steps must be in a certain order for the fault that ``random`` looks for.
    public var depth: Int
    /// The seed of the random schedules.
    public var seed: UInt64
    /// How many steps a schedule may have; one that is longer counts as endless.
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
