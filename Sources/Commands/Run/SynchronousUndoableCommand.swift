// SynchronousUndoableCommand.swift - an undoable command that never awaits, and so needs no task.

/// An undoable command that never awaits. An undo stack performs, undoes and redoes it before the call returns
/// (``UndoStack/performNow(_:name:target:mergeKey:recording:)``), an invoker runs it on a worker, and neither makes a task.
///
/// A command that throws should leave nothing behind. Compensation registered with ``CommandContext/onFailure(_:)`` may await; it runs
/// only in an ``UndoStack`` call that awaits, and in a run of several commands. Any other call reports leftovers instead.
public protocol SynchronousUndoableCommand<Output>: UndoableCommand {
    /// Does the work: see ``UndoableCommand/perform(_:)``.
    func perform(_ context: CommandContext) throws -> Performed<Output, Undo>

    /// Undoes the work.
    func undo(_ undo: Undo, _ context: CommandContext) throws

    /// Redoes the work: see ``UndoableCommand/redo(_:_:)``.
    func redo(_ undone: Undo, _ context: CommandContext) throws -> Performed<Output, Undo>
}

extension SynchronousUndoableCommand {
    /// Redoes the work by doing it anew: see ``perform(_:)``.
    public func redo(_ undone: Undo, _ context: CommandContext) throws -> Performed<Output, Undo> {
        try perform(context)
    }

    /// True.
    public var isSynchronous: Bool { true }
    /// True.
    public var neverAwaits: Bool { true }

    /// Does the work on the calling thread and discards the proof.
    public func executeNow(_ context: CommandContext) throws -> Output { try perform(context).output }
    /// Does the work on the calling thread.
    public func performNow(_ context: CommandContext) throws -> Performed<Output, Undo> {
        try perform(context)
    }
    /// Undoes the work on the calling thread.
    public func undoNow(_ undo: Undo, _ context: CommandContext) throws { try self.undo(undo, context) }
    /// Redoes the work on the calling thread.
    public func redoNow(_ undone: Undo, _ context: CommandContext) throws -> Performed<Output, Undo> {
        try redo(undone, context)
    }
}

extension UndoableCommand {
    /// False: the command needs a task.
    public var isSynchronous: Bool { false }

    /// Stops the process: the command needs a task.
    public func performNow(_ context: CommandContext) throws -> Performed<Output, Undo> {
        fatalError("UndoableCommand.performNow: \(Self.self) awaits; call perform()")
    }

    /// Stops the process: the command needs a task.
    public func undoNow(_ undo: Undo, _ context: CommandContext) throws {
        fatalError("UndoableCommand.undoNow: \(Self.self) awaits; call undo()")
    }

    /// Stops the process: the command needs a task.
    public func redoNow(_ undone: Undo, _ context: CommandContext) throws -> Performed<Output, Undo> {
        fatalError("UndoableCommand.redoNow: \(Self.self) awaits; call redo()")
    }
}

/// A command made from two closures that never await; the proof is what the first one returns.
public struct SynchronousUndoableClosure<Proof: Sendable>: SynchronousUndoableCommand {
    /// Nothing.
    public typealias Output = Void
    /// The result of the first closure.
    public typealias Undo = Proof

    private let body: @Sendable () throws -> Proof
    private let takeBack: @Sendable (Proof) throws -> Void

    /// A command that calls `body`, and whose undo calls `undo` with the result of `body`.
    public init(
        _ body: @escaping @Sendable () throws -> Proof, undo: @escaping @Sendable (Proof) throws -> Void
    ) {
        self.body = body
        takeBack = undo
    }

    /// Calls the first closure.
    public func perform(_ context: CommandContext) throws -> Performed<Void, Proof> {
        Performed(undo: try body())
    }

    /// Calls the second closure.
    public func undo(_ undo: Proof, _ context: CommandContext) throws { try takeBack(undo) }
}
