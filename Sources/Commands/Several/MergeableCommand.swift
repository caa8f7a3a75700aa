// MergeableCommand.swift - commands that an undo stack makes one step of.

/// An undoable command that can become one with the command of the same type, and the same target, before it: typing, dragging.
public protocol MergeableCommand<Output>: UndoableCommand {
    /// The merger of this change with the one before it.
    ///
    /// - Parameters:
    ///   - undo: the proof of this one.
    ///   - earlier: the command before it.
    ///   - earlierUndo: the proof of that.
    func merging(_ undo: Undo, after earlier: Self, _ earlierUndo: Undo) -> Merge<Self, Undo>
}

/// The merger of two changes, one after the other.
public enum Merge<C: Sendable, Undo: Sendable>: Sendable {
    /// They stay two steps.
    case keepBoth
    /// They are one change, of that command and with that proof.
    case replace(C, Undo)
    /// Together they change nothing.
    case dropBoth
}

extension MergeableCommand {
    /// True.
    public var isMergeable: Bool { true }
}
