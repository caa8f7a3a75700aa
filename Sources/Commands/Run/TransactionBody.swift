// TransactionBody.swift - what a run does, and what it keeps for the undo. One class for each way to make a
// command.

internal import CompositeOperationsBasics
@_spi(Faces) internal import Runs

/// The work of a run, independent of its output type. Not generic, so that holding one needs no metadata look-up.
///
/// Sendable, because its owner makes one call at a time: a run or an undo.
@usableFromInline class AnyBody: @unchecked Sendable {
    let options: TransactionOptions
    private let instance = Instance(.bodies)

    init(_ options: TransactionOptions) { self.options = options }

    var isSynchronous: Bool { false }
    /// The name of the command's type, for dumps.
    var nameOfCommand: String? { nil }
    /// Whether an observer is notified of failures during the run.
    var tellsFailures: Bool { false }

    /// The same body, wrapped for a run that has a span.
    func traced(in trace: RunTrace) -> AnyBody { self }
}

/// The work of a transaction command, or of a plain command submitted to an invoker.
@usableFromInline class TransactionBody<Output: Sendable>: AnyBody, @unchecked Sendable {
    func runSynchronously(_ context: CommandContext) throws -> Output {
        fatalError("TransactionCommand.executeNow: the work awaits; call execute()")
    }
    func run(_ context: CommandContext) async throws -> Output { fatalError("TransactionBody: abstract") }

    /// nil if the command has no undo.
    var undoability: Undoability? { nil }
    /// Undoes the last run, which succeeded.
    func undo(_ context: CommandContext) async throws { throw CommandUsageError.notUndoable }
    /// As ``undo(_:)``, for a synchronous body.
    func undoNow(_ context: CommandContext) throws { throw CommandUsageError.notUndoable }
    /// Whether the last run, which failed, left nothing behind to undo.
    var isRolledBack: Bool { true }

    /// The same commands in a body that has not run.
    func renewed() -> TransactionBody { fatalError("TransactionBody: abstract") }

    override func traced(in trace: RunTrace) -> AnyBody { TracedBody(self, trace) }

    /// The outcome of a run whose command threw `error`.
    final func end(of error: any Error, _ context: CommandContext) -> Outcome<Never> {
        Outcome(thrown: error, isAsked: context.isCancelled, mappedBy: options.mapError)
    }
}

/// A command without an undo.
@usableFromInline final class PlainBody<Output: Sendable>: TransactionBody<Output>, @unchecked Sendable {
    private let command: any Command<Output>

    @usableFromInline
    init(_ command: any Command<Output>, _ options: TransactionOptions = TransactionOptions()) {
        self.command = command
        super.init(options)
    }

    override var isSynchronous: Bool { command.neverAwaits }
    override var nameOfCommand: String? { "\(type(of: command))" }
    override func runSynchronously(_ context: CommandContext) throws -> Output {
        try command.executeNow(context)
    }
    override func run(_ context: CommandContext) async throws -> Output {
        try await takingBackParts(context, options.compensation) { [command] in try await command.execute($0)
        }
    }
    override func renewed() -> TransactionBody<Output> { PlainBody(renew(command), options) }
}

/// An undoable command, and the proof of its last run.
final class UndoableBody<Wrapped: UndoableCommand>: TransactionBody<Wrapped.Output>, @unchecked Sendable {
    private let command: Wrapped
    private var proof: Wrapped.Undo?
    private var hasLeftovers = false

    init(_ command: Wrapped, _ options: TransactionOptions) {
        self.command = command
        super.init(options)
    }

    override var isSynchronous: Bool { command.isSynchronous }
    override var nameOfCommand: String? { "\(Wrapped.self)" }

    override func runSynchronously(_ context: CommandContext) throws -> Wrapped.Output {
        try keeping { try leavingParts(context) { try command.performNow($0) } }
    }

    override func run(_ context: CommandContext) async throws -> Wrapped.Output {
        let result = await Result<Performed<Wrapped.Output, Wrapped.Undo>, any Error>.catching {
            try await takingBackParts(context, options.compensation) { [command] in
                try await command.perform($0)
            }
        }
        return try keeping { try result.get() }
    }

    private func keeping(_ run: () throws -> Performed<Wrapped.Output, Wrapped.Undo>) throws -> Wrapped.Output
    {
        hasLeftovers = false
        do {
            let performed = try run()
            proof = performed.undo
            return performed.output
        } catch {
            hasLeftovers = leftovers(of: error) != .complete
            throw error
        }
    }

    override var undoability: Undoability? { command.undoability }

    override func undo(_ context: CommandContext) async throws {
        guard let proof else { throw CommandUsageError.notExecuted }
        if command.undoability != .noEffect { try await command.undo(proof, context) }
        self.proof = nil
    }

    override func undoNow(_ context: CommandContext) throws {
        guard let proof else { throw CommandUsageError.notExecuted }
        if command.undoability != .noEffect { try command.undoNow(proof, context) }
        self.proof = nil
    }

    override var isRolledBack: Bool { !hasLeftovers }
    override func renewed() -> TransactionBody<Wrapped.Output> { UndoableBody(renew(command), options) }
}

/// A body that fails when it is run.
final class FailedBody<Output: Sendable>: TransactionBody<Output>, @unchecked Sendable {
    private let error: any Error

    init(_ error: any Error, _ options: TransactionOptions) {
        self.error = error
        super.init(options)
    }

    override var isSynchronous: Bool { true }
    override func runSynchronously(_ context: CommandContext) throws -> Output { throw error }
    override func run(_ context: CommandContext) async throws -> Output { throw error }
    override func renewed() -> TransactionBody<Output> { FailedBody(error, options) }
}

/// Runs the compensation that a failing `perform` registered.
///
/// - Returns: nil if nothing is left behind.
func takeBack(_ parts: FailureParts, after error: any Error, _ context: CommandContext) async
    -> TransactionFailure?
{
    let end = MemberRunEnd(failures: [MemberRunEnd.Failure(member: 0, error: error, parts: parts.take())])
    if end.failures[0].parts.isEmpty { return nil }
    let failure = await MemberCompensation(policy: parts.policy, observer: nil)
        .takeBack(Leftovers(end), of: end, context.compensating)
    return failure.hasLeftovers ? failure : nil
}

/// Calls `body`; if it throws, runs the compensation that it registered.
///
/// - Throws: what `body` throws; or a ``TransactionFailure`` with that error if something could not be undone.
@inline(__always)  // each frame of an awaiting call costs as much as a lock
nonisolated(nonsending) func takingBackParts<Value>(
    _ context: CommandContext, _ policy: TransactionOptions.Compensation = .continueOnFailure,
    _ body: nonisolated(nonsending) (CommandContext) async throws -> Value
) async throws -> Value {
    let parts = FailureParts(policy)
    var inner = context
    inner.parts = parts
    do { return try await body(inner) } catch {
        throw await takeBack(parts, after: error, context) ?? error
    }
}

/// Calls `body`, which never awaits. If it throws, the compensation that it registered does not run, since it may
/// await.
///
/// - Throws: what `body` throws; or a ``TransactionFailure`` with that error if it registered anything.
func leavingParts<Value>(_ context: CommandContext, _ body: (CommandContext) throws -> Value) throws -> Value
{
    let parts = FailureParts(.continueOnFailure)
    var inner = context
    inner.parts = parts
    do { return try body(inner) } catch {
        if parts.isEmpty { throw error }
        var failure = TransactionFailure(cause: error, failedMember: 0)
        failure.notCompensated = [0]
        throw failure
    }
}

/// How far a command that threw `error` was rolled back.
func leftovers(of error: any Error) -> TransactionFailure.Rollback {
    switch error {
    case let failure as TransactionFailure: failure.rollback
    case is OutcomeUnknown: .incomplete
    // The command was cancelled; `underlying` is the error that it threw.
    case let reason as CancelReason: reason.underlying.map { leftovers(of: $0) } ?? .complete
    default: .complete
    }
}

/// Whether an error leaves open whether the command was done.
package func isUnknown(_ error: any Error) -> Bool {
    switch error {
    case is OutcomeUnknown: true
    case let failure as TransactionFailure: isUnknown(failure.cause)
    case let reason as CancelReason: reason.underlying.map { isUnknown($0) } ?? false
    default: false
    }
}

/// Whether a command that threw `error` left something behind, or may have.
func isIncomplete(_ error: any Error) -> Bool { leftovers(of: error) == .incomplete }

/// Calls `body` in a task that is never cancelled, with the caller's priority and task-local values.
func shielded<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) async -> Value {
    let lane = ReentrancyMark.innermost
    return await Task { await ReentrancyMark.inTask(of: lane) { await body() } }.value
}

/// A command that contains runs, which must be renewed for a new run of the command.
protocol Renewable { func renewedCommand() -> Self }

func renew<Value>(_ command: Value) -> Value {
    (command as? any Renewable).map { $0.renewedCommand() as! Value } ?? command
}
