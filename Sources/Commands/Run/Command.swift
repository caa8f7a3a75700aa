// Command.swift - what a command is: work with a name, which may be done later, elsewhere, and taken back.

/// Work as a value: an invoker decides when and where it is done, and knows nothing of what it is done to.
///
/// One command may be executed several times; each execution is a new run. What it works on is the command's own affair:
/// an instance that is submitted five times runs five times on the same receiver.
///
/// - SeeAlso: Gamma, Helm, Johnson, Vlissides, *Design Patterns* (1994), Command.
public protocol Command<Output>: Sendable {
    /// The output of an execution.
    associatedtype Output: Sendable

    /// Does the work.
    ///
    /// - Throws: whatever made the work impossible; a `CancellationError` means that it was given up.
    func execute(_ context: CommandContext) async throws -> Output

    /// Whether it never awaits: then ``executeNow(_:)`` may be called. A ``SynchronousCommand`` says so by itself.
    var neverAwaits: Bool { get }

    /// Does the work on the calling thread, before the call returns.
    ///
    /// - Precondition: ``neverAwaits``.
    /// - Throws: as ``execute(_:)``.
    func executeNow(_ context: CommandContext) throws -> Output
}

extension Command {
    /// False: it needs a task.
    public var neverAwaits: Bool { false }

    /// Stops the process: it needs a task.
    public func executeNow(_ context: CommandContext) throws -> Output {
        fatalError("Command.executeNow: \(Self.self) awaits; call execute()")
    }

    /// Does the work, outside of any invoker.
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

/// A command whose work can be taken back by whoever holds the *proof* that it was done.
public protocol UndoableCommand<Output>: Command {
    /// The output of the work.
    associatedtype Output
    /// The proof: what ``undo(_:_:)`` needs to know of the execution that it takes back.
    associatedtype Undo: Sendable

    /// How far it can be taken back.
    var undoability: Undoability { get }

    /// Does the work. One that throws should have left nothing behind; see ``CommandContext/onFailure(_:)``.
    func perform(_ context: CommandContext) async throws -> Performed<Output, Undo>

    /// Takes the work back.
    func undo(_ undo: Undo, _ context: CommandContext) async throws

    /// Does the work again, after it was taken back.
    ///
    /// - Parameter undone: the proof of the execution that was taken back.
    func redo(_ undone: Undo, _ context: CommandContext) async throws -> Performed<Output, Undo>

    /// Whether it is a ``MergeableCommand``, which says so by itself.
    var isMergeable: Bool { get }

    /// Whether none of the three ever awaits: then the next three may be called. A ``SynchronousUndoableCommand`` says so by
    /// itself.
    var isSynchronous: Bool { get }

    /// Does the work on the calling thread, before the call returns.
    ///
    /// - Precondition: ``isSynchronous``.
    func performNow(_ context: CommandContext) throws -> Performed<Output, Undo>

    /// Takes the work back on the calling thread, before the call returns.
    ///
    /// - Precondition: ``isSynchronous``.
    func undoNow(_ undo: Undo, _ context: CommandContext) throws

    /// Does the work again on the calling thread, before the call returns.
    ///
    /// - Precondition: ``isSynchronous``.
    func redoNow(_ undone: Undo, _ context: CommandContext) throws -> Performed<Output, Undo>
}

extension UndoableCommand {
    /// False.
    public var isMergeable: Bool { false }

    /// ``Undoability/exact``.
    public var undoability: Undoability { .exact }

    /// Does the work; nobody will take it back.
    public func execute(_ context: CommandContext) async throws -> Output {
        try await perform(context).output
    }

    /// Does the work as for the first time.
    public func redo(_ undone: Undo, _ context: CommandContext) async throws -> Performed<Output, Undo> {
        try await perform(context)
    }
}

/// How far a command can be taken back.
public enum Undoability: Hashable, Sendable {
    /// Everything is as before.
    case exact
    /// There is nothing to take back: the command changes nothing.
    case noEffect
    /// The command cannot be taken back; why. Its `undo` is called all the same, as an acknowledgement.
    case irreversible(String)

    package var isIrreversible: Bool { if case .irreversible = self { true } else { false } }
}

/// That work was done: its output, and the proof that taking it back needs.
public struct Performed<Output: Sendable, Undo: Sendable>: Sendable {
    /// The output.
    public let output: Output
    /// The proof.
    public let undo: Undo

    /// Work was done.
    public init(_ output: Output, undo: Undo) {
        self.output = output
        self.undo = undo
    }
}

extension Performed where Output == Void {
    /// Work without an output was done.
    public init(undo: Undo) { self.init((), undo: undo) }
}

extension Performed where Undo == Void {
    /// Work was done whose undoing needs to know nothing.
    public init(_ output: Output) { self.init(output, undo: ()) }
}

extension Performed where Output == Void, Undo == Void {
    /// Work was done.
    public init() { self.init((), undo: ()) }
}

/// A command out of a closure.
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

/// An undoable command out of two closures; the proof is what the first one gives.
public struct UndoableClosure<Proof: Sendable>: UndoableCommand {
    /// Nothing.
    public typealias Output = Void
    /// The result of the first closure.
    public typealias Undo = Proof

    private let body: @Sendable (CommandContext) async throws -> Proof
    private let takeBack: @Sendable (Proof, CommandContext) async throws -> Void

    /// A command that calls `body`, and `undo` with what that gave.
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

    /// Calls the second one.
    public func undo(_ undo: Proof, _ context: CommandContext) async throws {
        try await takeBack(undo, context)
    }
}

extension UndoableClosure where Proof == Void {
    /// A command that calls `body`, and `undo` to take that back.
    public init(
        _ body: @escaping @Sendable (CommandContext) async throws -> Void,
        undo: @escaping @Sendable (CommandContext) async throws -> Void
    ) {
        self.body = body
        takeBack = { _, context in try await undo(context) }
    }
}
