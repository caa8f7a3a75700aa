// CommandState.swift - where runs are on their way, and what misuse is told.

/// A call that came at the wrong time. It has changed nothing.
public enum CommandUsageError: Error, Hashable, Sendable {
    /// The command runs, or has run.
    case alreadyExecuted
    /// There is nothing to undo: it has never run, or failed.
    case notExecuted
    /// It was undone.
    case alreadyUndone
    /// The command has no undo.
    case notUndoable
    /// It runs, or is being undone.
    case busy
    /// The call comes from inside what it would wait for, or from a task that was begun there.
    case reentrant
    /// An undo failed; nobody knows in which state things are.
    case broken
}

/// Where a ``TransactionCommand`` is on its way.
public enum CommandState: Hashable, Sendable {
    /// Nobody has run it.
    case ready
    /// An invoker has it.
    case accepted
    /// It runs.
    case executing
    /// It returned a value.
    case finished
    /// It did not.
    case failed
    /// It is being undone.
    case undoing
    /// It was undone, and may be executed again.
    case undone
    /// An undo failed.
    case broken
}
