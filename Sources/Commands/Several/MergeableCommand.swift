// MergeableCommand.swift - commands that an undo stack can merge into one step.

/// An undoable command that can merge with the preceding command of the same type and target: for example,
/// typing or dragging.
public protocol MergeableCommand<Output>: UndoableCommand {
    /// How this change merges with the preceding one.
    ///
    /// - Parameters:
    ///   - undo: the proof of this command.
    ///   - earlier: the preceding command.
    ///   - earlierUndo: the proof of the preceding command.
    func merging(_ undo: Undo, after earlier: Self, _ earlierUndo: Undo) -> Merge<Self, Undo>
}

/// How two successive changes merge.
public enum Merge<C: Sendable, Undo: Sendable>: Sendable {
    /// The changes stay two steps.
    case keepBoth
    /// The changes become one: that of the given command, with the given proof.
    case replace(C, Undo)
    /// The two changes cancel each other out.
    case dropBoth
}

extension MergeableCommand {
    /// True.
    public var isMergeable: Bool { true }
}
