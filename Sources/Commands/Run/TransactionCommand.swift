// TransactionCommand.swift - a command that names its run, ends it with one notification, and can undo it.

internal import CInspection
internal import CompositeOperationsBasics

/// A command whose run is named from the start, ends with exactly one notification, and can be undone.
///
/// ```swift
/// let command = TransactionCommand(ClosureCommand { try await load() }, delegate: list)
/// latest.begin(command.transaction)  // before the command can run
/// invoker.submit(command)
/// ```
///
/// The command runs once: a second `execute` throws ``CommandUsageError/alreadyExecuted``, unless the first run was undone.
/// The delegate is notified of the first run only, however it was started: once, with the ``transaction``, after the work has
/// ended. A run after an undo reports only to its caller.
///
/// The command retains its delegate until the delegate is notified. A command released before it runs ends as
/// ``CancelReason/Kind/abandoned``; hence a delegate should hold the token or the handle, not the command. A delegate that
/// does hold an unsubmitted command must submit it, ``abandon()`` it, or be held weakly.
public final class TransactionCommand<Output: Sendable>: UndoableCommand {
    /// The command itself stores the proof.
    public typealias Undo = Void

    /// The run, for waiting, observing and cancelling.
    public let handle: CommandHandle<Output>
    let body: TransactionBody<Output>
    private let instance = Instance(.transactionCommands)

    private init(_ body: TransactionBody<Output>, _ delegate: DelegateReference?) {
        self.body = body
        handle = CommandHandle()
        if let delegate { handle.locked { $0.delegate = delegate } }
    }

    deinit { abandon() }

    // MARK: Creation

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

    /// Wraps a command. The delegate is notified on the main actor.
    public convenience init(
        _ command: some Command<Output>, delegate: any MainActorTransactionCommandDelegate,
        options: TransactionOptions = TransactionOptions()
    ) {
        self.init(PlainBody(command, options), DelegateReference(delegate, options))
    }

    /// Wraps a command that can be undone. The delegate is notified on the main actor.
    public convenience init(
        _ command: some UndoableCommand<Output>, delegate: any MainActorTransactionCommandDelegate,
        options: TransactionOptions = TransactionOptions()
    ) {
        self.init(UndoableBody(command, options), DelegateReference(delegate, options))
    }

    /// Several commands, all or nothing: when one fails, the completed ones are undone in reverse order.
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

    /// Several commands, all or nothing. The delegate is notified on the main actor.
    public convenience init(
        commands: [any UndoableCommand], delegate: any MainActorTransactionCommandDelegate,
        options: TransactionOptions = TransactionOptions()
    ) where Output == Void {
        self.init(
            MembersBody(commands, options, keepsOutputs: false) { _ in }, DelegateReference(delegate, options)
        )
    }

    /// Several commands of one type, all or nothing; returns their outputs in the order of the commands. A failing run throws
    /// ``TransactionFailure``.
    public convenience init<Member: UndoableCommand>(
        all commands: [Member], delegate: (any TransactionCommandDelegate)? = nil,
        options: TransactionOptions = TransactionOptions()
    ) where Output == [Member.Output] {
        self.init(
            MembersBody(commands, options) { $0.map { $0 as! Member.Output } },
            delegate.map { DelegateReference($0, options) })
    }

    /// Several commands, all or nothing; returns their outputs as a tuple. A failing run throws ``TransactionFailure``.
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

    /// Several commands, all or nothing; returns their outputs, of any types.
    package convenience init(
        gathering commands: [any UndoableCommand], options: TransactionOptions
    ) where Output == [any Sendable] {
        self.init(MembersBody(commands, options) { $0 }, nil)
    }

    /// A command that fails with `error` when run: for clients that expect an outcome even when there is nothing to do.
    public static func failed(
        _ error: any Error, delegate: (any TransactionCommandDelegate)? = nil,
        options: TransactionOptions = TransactionOptions()
    ) -> TransactionCommand {
        TransactionCommand(FailedBody(error, options), delegate.map { DelegateReference($0, options) })
    }

    /// The same command, with a new token.
    ///
    /// - Throws: unless this command has failed: ``CommandUsageError/busy``, ``CommandUsageError/notExecuted``,
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

    /// The current state.
    public var state: CommandState {
        handle.locked { fields in
            fields.unseen?.see()
            return fields.machine.state
        }
    }

    /// How far the command can be undone. A plain command cannot be undone.
    public var undoability: Undoability {
        switch body.undoability {
        case nil: .irreversible("a command without an undo")
        // Its undo has an effect: it resets the state of this command.
        case .noEffect?: .exact
        case let undoability?: undoability
        }
    }

    // MARK: Running

    /// Runs the command now.
    ///
    /// - Throws: the same error object that the delegate gets: the command's error, passed through
    ///   ``TransactionOptions/mapError``; a `CancellationError` if the run was cancelled, or the ``CancelReason`` if it ended
    ///   without a value for another reason. Also ``CommandUsageError/alreadyExecuted``, with no effect, and
    ///   ``CommandUsageError/broken``.
    public func execute(_ context: CommandContext) async throws -> Output {
        let claim = try handle.claim()
        if inspection_traces() {
            return try await handle.tracing(body) { try await handle.perform($0, context, claim) }
        }
        return try await handle.perform(body, context, claim)
    }

    /// Runs the command, as ``execute(_:)`` does.
    public func perform(_ context: CommandContext) async throws -> Performed<Output, Void> {
        Performed(try await execute(context))
    }

    /// Undoes the run. Cancellation does not interrupt the undo. Irreversible effects remain; see ``undoability``.
    ///
    /// - Throws: ``CommandUsageError``, with no effect; otherwise what the command's undo threw, or, for several commands, a
    ///   ``TransactionFailure``, and the command becomes ``CommandState/broken``.
    public func undo() async throws { try await undo((), CommandContext()) }

    /// Undoes the run, as ``undo()`` does.
    public func undo(_ undo: Void, _ context: CommandContext) async throws {
        if body.isSynchronous { return try undoNow(undo, context) }
        guard let inner = try beginUndo(context) else { return try endUndo(nil) }
        try endUndo(
            await shielded { [body, inner] in
                do { try await body.undo(inner) } catch { return error }
                return nil
            })
    }

    /// - Returns: the context of the undo; nil if there is nothing to do.
    private func beginUndo(_ context: CommandContext) throws -> CommandContext? {
        let isPlain = body.undoability == nil
        // When a run of several commands is rolled back, a plain command only acknowledges that its effects remain.
        if isPlain, !context.isCompensating { throw CommandUsageError.notUndoable }
        try handle.beginUndo(goesOn: context.goesOn)
        if isPlain { return nil }
        // Broken by a failed run, not by an undo: the leftovers of that run are unknown.
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

    /// Ends a command that will not be run, as ``CancelReason/Kind/abandoned``. No effect once it is submitted or executed.
    public func abandon() { _ = handle.reject(.abandoned) }

    /// Whether the command needs no task.
    public var neverAwaits: Bool { body.isSynchronous }

    /// Runs the command on the calling thread.
    public func executeNow(_ context: CommandContext) throws -> Output {
        let claim = try handle.claim()
        if inspection_traces() {
            return try handle.tracing(body) { try handle.performNow($0, context, claim) }
        }
        return try handle.performNow(body, context, claim)
    }

    /// Whether neither the command nor its undo needs a task.
    public var isSynchronous: Bool { body.isSynchronous }

    /// Runs the command on the calling thread.
    public func performNow(_ context: CommandContext) throws -> Performed<Output, Void> {
        Performed(try executeNow(context))
    }

    /// Undoes the run on the calling thread, as ``undo()`` does.
    public func undoNow(_ undo: Void = (), _ context: CommandContext = CommandContext()) throws {
        guard let inner = try beginUndo(context) else { return try endUndo(nil) }
        do { try body.undoNow(inner) } catch { return try endUndo(error) }
        try endUndo(nil)
    }

    /// Runs the command again on the calling thread.
    public func redoNow(_ undone: Void, _ context: CommandContext) throws -> Performed<Output, Void> {
        try performNow(context)
    }
}

extension TransactionCommand: Renewable {
    func renewedCommand() -> TransactionCommand { (try? again()) ?? self }
}
