/// Runs a body once for each order in which the steps of its tasks may come, and tells the first order in which it fails.
///
/// A step is what a task does from one suspension to the next. These are explored: child tasks, `Task { }` and detached
/// tasks, actors and the main actor, continuations, async sequences, `Task.yield()`, and `Task.sleep`, whose time passes
/// at once, and which may end at any moment at which it is the next to end.
///
/// These are not: what happens within a step (a lock, an atomic variable: there `explorationPoint` makes a point at
/// which others may come between); threads and queues outside of Swift's tasks, and actors and tasks with executors of
/// their own, which are told; the turns of those that wait for the same actor, which come in their order and without a
/// step of another task in between; clocks that are read.
///
/// - Parameters:
///   - options: which schedules.
///   - verdict: asked after each schedule: why it is not as it should be, where the body has not thrown; nil: it is.
///   - body: begins anew each time, and shares nothing with the run before.
/// - Returns: what was found out. When the calling task is cancelled, what has been so far.
/// - Complexity: some microseconds a schedule, and linear in its steps times the tasks that are ready at each. The calling
///   thread is kept for milliseconds at a time, and while a failing schedule is made smaller, for up to some ten thousand
///   schedules.
///
/// Source: Godefroid, Model Checking for Programming Languages using VeriSoft (1997), for the search; loom and shuttle, which
/// do this for Rust, for its use.
public func checkSchedules(
    options: ExplorationOptions = ExplorationOptions(), verdict: () -> String? = { nil },
    _ body: @escaping @Sendable () async throws -> Void
) async -> ExplorationOutcome {
    var exploration = Exploration(options: options)
    return await exploration.run(verdict: verdict, body)
}

/// A point at which steps of other tasks may come, in code that ``checkSchedules(options:verdict:_:)`` explores: it suspends
/// the calling task there. Elsewhere nothing happens.
///
/// - Parameter name: is told with the steps.
public nonisolated(nonsending) func explorationPoint(_ name: StaticString) async {
    guard let explorer = Explorer.current else { return }
    // Not `Task.yield`, which an unstructured task's method of an actor does on the runtime's own threads.
    await withUnsafeContinuation { explorer.stop(at: name, $0) }
}

/// The executor of the exploration whose step runs here, for code that takes an executor, and would otherwise begin its
/// tasks on one of its own; nil: none does.
public var explorationExecutor: (any TaskExecutor)? { Explorer.current }
