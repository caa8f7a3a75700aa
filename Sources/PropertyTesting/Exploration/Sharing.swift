// Sharing.swift - the state that tasks share, as far as a test knows, and whether a step shared any.

/// The state that the tasks of an explored body share, as far as the test knows.
///
/// Source: the persistent sets and the sleep sets of Godefroid, Partial-Order Methods for the Verification of Concurrent
/// Systems (1996).
public enum Sharing: Hashable, Sendable {
    /// Anything: each order is run.
    case anything
    /// All shared state that changes is in actors; tasks await each other's values, and no task is cancelled, not even by a
    /// group whose child throws. Then the order of steps that are in no actor, and end at a point or a `Task.yield()`, makes no
    /// difference: of orders that differ only in such steps one is run, so independent steps do not multiply the number of
    /// schedules.
    case actors
}

/// Whether the running step shares something with another task, as far as the explorer sees: whether it is in an actor, or its
/// task does not continue. Creating tasks, or making them ready, is not sharing: it commutes with the steps of other tasks.
struct SharingOfStep {
    private var task: UInt64 = 0
    private var isShared = true
    private var goesOn = false

    mutating func begins(_ step: Explorer.Ready) {
        task = step.task
        goesOn = false
        isShared = !step.isOfTask || step.place == .mainActor || step.place == .sleep
    }

    /// - Parameter number: the number of the task; 0: the job is an actor's.
    mutating func becomesReady(_ number: UInt64, in place: Explorer.Place) {
        if number == task, place != .mainActor, place != .sleep { goesOn = true }
    }

    /// Records that the step has read the time, which other steps change.
    mutating func readsTime() { isShared = true }

    /// - Returns: whether the step shared something; true also when its task waits or has ended.
    func ends() -> Bool { isShared || !goesOn }
}
