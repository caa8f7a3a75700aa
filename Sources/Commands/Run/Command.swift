// Command.swift - what a command is: work as a value, to be done later or elsewhere, and perhaps undone.

/// Work as a value. An invoker decides when and where the work is done, and knows nothing about its receiver.
///
/// One command may be executed several times; each execution is a new run. The receiver is up to the command: an instance
/// submitted five times runs five times on the same receiver.
///
/// - SeeAlso: Gamma, Helm, Johnson, Vlissides, *Design Patterns* (1994), Command.
public protocol Command<Output>: Sendable {
    /// The output of an execution.
    associatedtype Output: Sendable

    /// Does the work.
    ///
    /// - Throws: the error that made the work impossible; a `CancellationError` means that the work was abandoned.
    func execute(_ context: CommandContext) async throws -> Output

    /// Whether the command never awaits, so that ``executeNow(_:)`` may be called. True for every ``SynchronousCommand``.
    var neverAwaits: Bool { get }

    /// Does the work on the calling thread, before the call returns.
    ///
    /// - Precondition: ``neverAwaits``.
    /// - Throws: as ``execute(_:)``.
    func executeNow(_ context: CommandContext) throws -> Output
}

extension Command {
    /// False: the command needs a task.
    public var neverAwaits: Bool { false }

    /// Stops the process: the command needs a task.
    public func executeNow(_ context: CommandContext) throws -> Output {
        fatalError("Command.executeNow: \(Self.self) awaits; call execute()")
    }

    /// Does the work outside any invoker.
    public func execute() async throws -> Output { try await execute(CommandContext()) }
}

/// A command that never awaits. An invoker runs it on a worker, without a task.
public protocol SynchronousCommand<Output>: Command {
    /// Does the work.
    ///
    /// - Throws: as ``Command/execute(_:)``.
    func execute(_ context: CommandContext) throws -> Output
}

extension SynchronousCommand {
    /// True.
    public var neverAwaits: Bool { true }

    /// Does the work on the calling thread.
    public func executeNow(_ context: CommandContext) throws -> Output {
        try execute(context)
    }
}

/// A command whose work can be undone by any holder of the *proof* that it was done.
public protocol UndoableCommand<Output>: Command {
    /// The output of the work.
    associatedtype Output
    /// The proof: what ``undo(_:_:)`` needs to know about the execution that it undoes.
    associatedtype Undo: Sendable

    /// How far the work can be undone.
    var undoability: Undoability { get }

    /// Does the work. An execution that throws should leave nothing behind; see ``CommandContext/onFailure(_:)``.
    func perform(_ context: CommandContext) async throws -> Performed<Output, Undo>

    /// Undoes the work.
    func undo(_ undo: Undo, _ context: CommandContext) async throws

    /// Redoes the work after it was undone.
    ///
    /// - Parameter undone: the proof of the execution that was undone.
    func redo(_ undone: Undo, _ context: CommandContext) async throws -> Performed<Output, Undo>

    /// Whether the command is a ``MergeableCommand``.
    var isMergeable: Bool { get }

    /// Whether none of the three methods above ever awaits, so that the next three may be called. True for every
    /// ``SynchronousUndoableCommand``.
    var isSynchronous: Bool { get }

    /// Does the work on the calling thread, before the call returns.
    ///
    /// - Precondition: ``isSynchronous``.
    func performNow(_ context: CommandContext) throws -> Performed<Output, Undo>

    /// Undoes the work on the calling thread, before the call returns.
    ///
    /// - Precondition: ``isSynchronous``.
    func undoNow(_ undo: Undo, _ context: CommandContext) throws

    /// Redoes the work on the calling thread, before the call returns.
    ///
    /// - Precondition: ``isSynchronous``.
    func redoNow(_ undone: Undo, _ context: CommandContext) throws -> Performed<Output, Undo>
}

extension UndoableCommand {
    /// False.
    public var isMergeable: Bool { false }

    /// ``Undoability/exact``.
    public var undoability: Undoability { .exact }

    /// Does the work and discards the proof.
    public func execute(_ context: CommandContext) async throws -> Output {
        try await perform(context).output
    }

    /// Redoes the work by doing it anew: see ``perform(_:)``.
    public func redo(_ undone: Undo, _ context: CommandContext) async throws -> Performed<Output, Undo> {
        try await perform(context)
    }
}

/// How far a command can be undone.
public enum Undoability: Hashable, Sendable {
    /// Undoing restores everything.
    case exact
    /// There is nothing to undo: the command changes nothing.
    case noEffect
    /// The command cannot be undone, for the given reason. Its `undo` is still called, as an acknowledgement.
    case irreversible(String)

    package var isIrreversible: Bool { if case .irreversible = self { true } else { false } }
}

/// The result of work that was done: its output, and the proof needed to undo it.
public struct Performed<Output: Sendable, Undo: Sendable>: Sendable {
    /// The output.
    public let output: Output
    /// The proof.
    public let undo: Undo

    /// Creates the result of work.
    public init(_ output: Output, undo: Undo) {
        self.output = output
        self.undo = undo
    }
}

extension Performed where Output == Void {
    /// Creates the result of work without an output.
    public init(undo: Undo) { self.init((), undo: undo) }
}

extension Performed where Undo == Void {
    /// Creates the result of work that can be undone without a proof.
    public init(_ output: Output) { self.init(output, undo: ()) }
}

extension Performed where Output == Void, Undo == Void {
    /// Creates the result of work without an output, which can be undone without a proof.
    public init() { self.init((), undo: ()) }
}

/// A command made from a closure.
public struct ClosureCommand<Output: Sendable>: Command {
    private let body: @Sendable (CommandContext) async throws -> Output

    /// A command that calls `body`.
    public init(_ body: @escaping @Sendable () async throws -> Output) {
        self.body = { _ in try await body() }
    }

    /// A command that calls `body` with the context of its run.
    public init(_ body: @escaping @Sendable (CommandContext) async throws -> Output) { self.body = body }

    /// Calls the closure.
    public func execute(_ context: CommandContext) async throws -> Output { try await body(context) }
}

/// An undoable command made from two closures; the proof is what the first one returns.
public struct UndoableClosure<Proof: Sendable>: UndoableCommand {
    /// Nothing.
    public typealias Output = Void
    /// The result of the first closure.
    public typealias Undo = Proof

    private let body: @Sendable (CommandContext) async throws -> Proof
    private let takeBack: @Sendable (Proof, CommandContext) async throws -> Void

    /// A command that calls `body`, and whose undo calls `undo` with the result of `body`.
    public init(
        _ body: @escaping @Sendable (CommandContext) async throws -> Proof,
        undo: @escaping @Sendable (Proof, CommandContext) async throws -> Void
    ) {
        self.body = body
        takeBack = undo
    }

    /// Calls the first closure.
    public func perform(_ context: CommandContext) async throws -> Performed<Void, Proof> {
        Performed(undo: try await body(context))
    }

    /// Calls the second closure.
    public func undo(_ undo: Proof, _ context: CommandContext) async throws {
        try await takeBack(undo, context)
    }
}

extension UndoableClosure where Proof == Void {
    /// A command that calls `body`, and whose undo calls `undo`.
    public init(
        _ body: @escaping @Sendable (CommandContext) async throws -> Void,
        undo: @escaping @Sendable (CommandContext) async throws -> Void
    ) {
        self.body = body
        takeBack = { _, context in try await undo(context) }
    }
}
