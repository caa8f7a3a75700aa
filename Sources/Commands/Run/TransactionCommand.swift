// TransactionCommand.swift - a command that names its run, ends it with one notification, and can take it back.

internal import CInspection
internal import CompositeOperationsBasics

/// A command whose run has a name from the beginning, ends with exactly one notification, and can be undone.
///
/// ```swift
/// let command = TransactionCommand(ClosureCommand { try await load() }, delegate: list)
/// latest.begin(command.transaction)  // before anybody can run it
/// invoker.submit(command)
/// ```
///
/// It runs once: a second `execute` throws ``CommandUsageError/alreadyExecuted``, unless the first was undone. Whoever
/// runs it, the delegate is told of the first run only: once, with the ``transaction``, after the work has ended. A run
/// after an undo answers its caller alone.
///
/// It holds its delegate until that has been told. One that is released before anybody ran it ends as
/// ``CancelReason/Kind/abandoned``; so a delegate should hold the token or the handle, not the command. One that does hold an
/// unsubmitted command has to submit it, to ``abandon()`` it, or to be held weakly.
public final class TransactionCommand<Output: Sendable>: UndoableCommand {
    /// The proof is in the command.
    public typealias Undo = Void

    /// The run, to be waited for, observed and cancelled.
    public let handle: CommandHandle<Output>
    let body: TransactionBody<Output>
    private let instance = Instance(.transactionCommands)

    private init(_ body: TransactionBody<Output>, _ delegate: DelegateReference?) {
        self.body = body
        handle = CommandHandle()
        if let delegate { handle.locked { $0.delegate = delegate } }
    }

    deinit { abandon() }

    // MARK: Making

    /// Wraps a command.
    public convenience init(
        _ command: some Command<Output>, delegate: (any TransactionCommandDelegate)? = nil,
        options: TransactionOptions = TransactionOptions()
    ) {
        self.init(PlainBody(command, options), delegate.map { DelegateReference($0, options) })
    }

    /// Wraps a command that can be undone.
    public convenience init(
        _ command: some UndoableCommand<Output>, delegate: (any TransactionCommandDelegate)? = nil,
        options: TransactionOptions = TransactionOptions()
    ) {
        self.init(UndoableBody(command, options), delegate.map { DelegateReference($0, options) })
    }

    /// Wraps a command. The delegate is told on the main actor.
    public convenience init(
        _ command: some Command<Output>, delegate: any MainActorTransactionCommandDelegate,
        options: TransactionOptions = TransactionOptions()
    ) {
        self.init(PlainBody(command, options), DelegateReference(delegate, options))
    }

    /// Wraps a command that can be undone. The delegate is told on the main actor.
    public convenience init(
        _ command: some UndoableCommand<Output>, delegate: any MainActorTransactionCommandDelegate,
        options: TransactionOptions = TransactionOptions()
    ) {
        self.init(UndoableBody(command, options), DelegateReference(delegate, options))
    }

    /// Several commands, all or nothing: when one fails, those that were done are undone, in reverse order.
    ///
    /// A failing run throws ``TransactionFailure``.
    ///
    /// - Precondition: the limit of a parallel ``TransactionOptions/order`` is greater than 0.
    /// - Complexity: a run takes O(commands) time.
    public convenience init(
        commands: [any UndoableCommand], delegate: (any TransactionCommandDelegate)? = nil,
        options: TransactionOptions = TransactionOptions()
    ) where Output == Void {
        self.init(
            MembersBody(commands, options, keepsOutputs: false) { _ in },
            delegate.map { DelegateReference($0, options) })
    }

    /// Several commands, all or nothing. The delegate is told on the main actor.
    public convenience init(
        commands: [any UndoableCommand], delegate: any MainActorTransactionCommandDelegate,
        options: TransactionOptions = TransactionOptions()
    ) where Output == Void {
        self.init(
            MembersBody(commands, options, keepsOutputs: false) { _ in }, DelegateReference(delegate, options)
        )
    }

    /// Several commands of one type, all or nothing, which gives their outputs, in the order of the commands. A failing run
    /// throws ``TransactionFailure``.
    public convenience init<Member: UndoableCommand>(
        all commands: [Member], delegate: (any TransactionCommandDelegate)? = nil,
        options: TransactionOptions = TransactionOptions()
    ) where Output == [Member.Output] {
        self.init(
            MembersBody(commands, options) { $0.map { $0 as! Member.Output } },
            delegate.map { DelegateReference($0, options) })
    }

    /// Several commands, all or nothing, which gives their outputs as a tuple. A failing run throws ``TransactionFailure``.
    public convenience init<each Member: UndoableCommand>(
        all commands: repeat each Member, delegate: (any TransactionCommandDelegate)? = nil,
        options: TransactionOptions = TransactionOptions()
    ) where Output == (repeat (each Member).Output) {
        var members: [any UndoableCommand] = []
        for command in repeat each commands { members.append(command) }
        self.init(
            MembersBody(members, options) { outputs in
                var next = 0
                func take<Value>(_: Value.Type) -> Value {
                    defer { next += 1 }
                    return outputs[next] as! Value
                }
                return (repeat take((each Member).Output.self))
            }, delegate.map { DelegateReference($0, options) })
    }

    /// Several commands, all or nothing, which gives their outputs, whatever they are.
    package convenience init(
        gathering commands: [any UndoableCommand], options: TransactionOptions
    ) where Output == [any Sendable] {
        self.init(MembersBody(commands, options) { $0 }, nil)
    }

    /// A command that fails with `error` when it is run: where there is nothing to do, somebody still waits for an end.
    public static func failed(
        _ error: any Error, delegate: (any TransactionCommandDelegate)? = nil,
        options: TransactionOptions = TransactionOptions()
    ) -> TransactionCommand {
        TransactionCommand(FailedBody(error, options), delegate.map { DelegateReference($0, options) })
    }

    /// The same command, with a token of its own.
    ///
    /// - Throws: unless this one has failed: ``CommandUsageError/busy``, ``CommandUsageError/notExecuted``,
    ///   ``CommandUsageError/alreadyExecuted`` or ``CommandUsageError/broken``.
    public func again(delegate: (any TransactionCommandDelegate)? = nil) throws -> TransactionCommand {
        switch state {
        case .failed: break
        case .accepted, .executing, .undoing: throw CommandUsageError.busy
        case .ready: throw CommandUsageError.notExecuted
        case .broken: throw CommandUsageError.broken
        case .finished, .undone: throw CommandUsageError.alreadyExecuted
        }
        return TransactionCommand(body.renewed(), delegate.map { DelegateReference($0, body.options) })
    }

    // MARK: Reading

    /// The token of the run.
    public var transaction: CommandTransaction { handle.transaction }

    /// Where it is on its way.
    public var state: CommandState {
        handle.locked { fields in
            fields.unseen?.see()
            return fields.machine.state
        }
    }

    /// How far it can be undone. A plain command cannot be.
    public var undoability: Undoability {
        switch body.undoability {
        case nil: .irreversible("a command without an undo")
        // Its state goes back.
        case .noEffect?: .exact
        case let undoability?: undoability
        }
    }

    // MARK: Running

    /// Runs it, now.
    ///
    /// - Throws: what the delegate is told, the same object: the command's error, through ``TransactionOptions/mapError``; a
    ///   `CancellationError` when it was cancelled, else the ``CancelReason``;
    ///   ``CommandUsageError/alreadyExecuted``, and nothing is changed; ``CommandUsageError/broken``.
    public func execute(_ context: CommandContext) async throws -> Output {
        let claim = try handle.claim()
        if inspection_traces() {
            return try await handle.tracing(body) { try await handle.perform($0, context, claim) }
        }
        return try await handle.perform(body, context, claim)
    }

    /// Runs it, as ``execute(_:)``.
    public func perform(_ context: CommandContext) async throws -> Performed<Output, Void> {
        Performed(try await execute(context))
    }

    /// Takes the run back. The work goes on whoever is cancelled. What is irreversible in it stays: ``undoability`` says so.
    ///
    /// - Throws: ``CommandUsageError``, and nothing is changed; else what the command's undo threw, or, of several, a
    ///   ``TransactionFailure``, and the command is ``CommandState/broken``.
    public func undo() async throws { try await undo((), CommandContext()) }

    /// Takes the run back, as ``undo()``.
    public func undo(_ undo: Void, _ context: CommandContext) async throws {
        if body.isSynchronous { return try undoNow(undo, context) }
        guard let inner = try beginUndo(context) else { return try endUndo(nil) }
        try endUndo(
            await shielded { [body, inner] in
                do { try await body.undo(inner) } catch { return error }
                return nil
            })
    }

    /// - Returns: the context of the undo; nil when there is nothing to do.
    private func beginUndo(_ context: CommandContext) throws -> CommandContext? {
        let isPlain = body.undoability == nil
        // In a run of several that is taken back, it only acknowledges that it stays.
        if isPlain, !context.isCompensating { throw CommandUsageError.notUndoable }
        try handle.beginUndo(goesOn: context.goesOn)
        if isPlain { return nil }
        // Broken by a run that failed, and not by an undo: what that left is not known.
        if !body.isRolledBack { try endUndo(CommandUsageError.broken) }
        var inner = context.compensating
        inner.transaction = transaction
        inner.goesOn = context.goesOn
        return inner
    }

    private func endUndo(_ error: (any Error)?) throws {
        handle.locked { $0.machine.endUndo(succeeded: error == nil) }
        if let error { throw error }
    }

    /// Ends a command that nobody will run, as ``CancelReason/Kind/abandoned``. Does nothing once it is submitted or executed.
    public func abandon() { _ = handle.reject(.abandoned) }

    /// Whether it needs no task.
    public var neverAwaits: Bool { body.isSynchronous }

    /// Runs it on the calling thread.
    public func executeNow(_ context: CommandContext) throws -> Output {
        let claim = try handle.claim()
        if inspection_traces() {
            return try handle.tracing(body) { try handle.performNow($0, context, claim) }
        }
        return try handle.performNow(body, context, claim)
    }

    /// Whether neither it nor its undo needs a task.
    public var isSynchronous: Bool { body.isSynchronous }

    /// Runs it on the calling thread.
    public func performNow(_ context: CommandContext) throws -> Performed<Output, Void> {
        Performed(try executeNow(context))
    }

    /// Takes the run back on the calling thread, as ``undo()``.
    public func undoNow(_ undo: Void = (), _ context: CommandContext = CommandContext()) throws {
        guard let inner = try beginUndo(context) else { return try endUndo(nil) }
        do { try body.undoNow(inner) } catch { return try endUndo(error) }
        try endUndo(nil)
    }

    /// Runs it again on the calling thread.
    public func redoNow(_ undone: Void, _ context: CommandContext) throws -> Performed<Output, Void> {
        try performNow(context)
    }
}

extension TransactionCommand: Renewable {
    func renewedCommand() -> TransactionCommand { (try? again()) ?? self }
}
