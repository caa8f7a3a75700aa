/// Runs a body once for each possible order of the steps of its tasks, and reports the first order in which it fails.
///
/// A step is the work of a task from one suspension to the next. The exploration covers child tasks, `Task { }` and detached
/// tasks, actors and the main actor, continuations, async sequences, `Task.yield()`, and `Task.sleep`. A sleep takes no real
/// time, and may end at any moment at which it is the next sleep to end.
///
/// The exploration does not cover: interleavings within a step, for example around a lock or an atomic variable
/// (`explorationPoint` adds a point at which other tasks may run); threads and queues outside Swift's tasks, and actors and
/// tasks with custom executors, which are reported; the turns of tasks that wait for the same actor, which come in order and
/// without a step of another task in between; reads of clocks.
///
/// - Parameters:
///   - options: the schedules to run.
///   - verdict: called after each schedule; returns the reason for a failure, which replaces an error that the body threw, or
///     nil.
///   - body: must start afresh each time, and share nothing with the previous run.
/// - Returns: the outcome; when the calling task is cancelled, the outcome so far.
/// - Complexity: some microseconds per schedule, linear in its steps times the tasks that are ready at each step. The calling
///   thread is occupied for milliseconds at a time; while a failing schedule is shrunk, for up to some ten thousand
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

/// A point at which steps of other tasks may run, in code that ``checkSchedules(options:verdict:_:)`` explores: it suspends
/// the calling task there. Outside an exploration nothing happens.
///
/// - Parameter name: is reported with the steps.
public nonisolated(nonsending) func explorationPoint(_ name: StaticString) async {
    guard let explorer = Explorer.current else { return }
    // Not `Task.yield`: in an actor's method, an unstructured task yields on the runtime's own threads.
    await withUnsafeContinuation { explorer.stop(at: name, $0) }
}

/// The executor of the exploration whose step runs on this thread, for code that takes an executor and would otherwise use
/// its own; nil outside an exploration.
public var explorationExecutor: (any TaskExecutor)? { Explorer.current }
