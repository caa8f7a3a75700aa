// CommandState.swift - where runs are on their way, and what misuse is told.

/// A call that came at the wrong time. It has changed nothing.
public enum CommandUsageError: Error, Hashable, Sendable {
    /// The command runs, or has run.
    case alreadyExecuted
    /// There is nothing to undo: it has never run, or failed.
    case notExecuted
    /// The command was undone.
    case alreadyUndone
    /// The command has no undo.
    case notUndoable
    /// The command runs, or is being undone.
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
    /// Running.
    case executing
    /// Returned a value.
    case finished
    /// Ended without a value.
    case failed
    /// Being undone.
    case undoing
    /// Undone; may be executed again.
    case undone
    /// An undo failed.
    case broken
}
