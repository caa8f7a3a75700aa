// CommandState.swift - the states of a run, and the errors of misuse.

/// A call that came at the wrong time, and had no effect.
public enum CommandUsageError: Error, Hashable, Sendable {
    /// The command is running, or has run.
    case alreadyExecuted
    /// There is nothing to undo: the command has never run, or it failed.
    case notExecuted
    /// The command was undone.
    case alreadyUndone
    /// The command has no undo.
    case notUndoable
    /// The command is running or being undone.
    case busy
    /// The call comes from inside the work that it would wait for, or from a task started there.
    case reentrant
    /// An undo failed, or a run after an undo left something behind; the state of the receiver is unknown.
    case broken
}

/// The state of a ``TransactionCommand``.
public enum CommandState: Hashable, Sendable {
    /// Not yet run.
    case ready
    /// Accepted by an invoker.
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
    /// An undo failed, or a run after an undo left something behind.
    case broken
}
