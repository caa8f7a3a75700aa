// Sharing.swift - what tasks share, as far as a test knows, and whether a step did.

/// The state that the tasks of an explored body share, as far as the test knows.
///
/// Source: the persistent sets and the sleep sets of Godefroid, Partial-Order Methods for the Verification of Concurrent
/// Systems (1996).
public enum Sharing: Hashable, Sendable {
    /// Anything: each order is run.
    case anything
    /// All shared state that changes is in actors; tasks await each other's values, and nobody is cancelled, also not by a group
    /// whose child throws. Then the order of steps that are in no actor, and end at a point or a `Task.yield()`, makes no
    /// difference: of the orders that differ in that alone one is run, so that steps which have nothing to do with each
    /// other do not multiply.
    case actors
}

/// Whether the running step shares something with another task, as far as the explorer sees: whether it is in an actor, or
/// does not go on. To make other tasks, or ready, is nothing that others could do before or after it.
struct SharingOfStep {
    private var task: UInt64 = 0
    private var isShared = true
    private var goesOn = false

    mutating func begins(_ step: Explorer.Ready) {
        task = step.task
        goesOn = false
        isShared = !step.isOfTask || step.place == .mainActor || step.place == .sleep
    }

    /// - Parameter number: of the task; 0: of an actor.
    mutating func becomesReady(_ number: UInt64, in place: Explorer.Place) {
        if number == task, place != .mainActor, place != .sleep { goesOn = true }
    }

    /// Notes that the step has read the time, which passes by other steps.
    mutating func readsTime() { isShared = true }

    /// - Returns: whether it shared something; also when its task waits, or has ended.
    func ends() -> Bool { isShared || !goesOn }
}
