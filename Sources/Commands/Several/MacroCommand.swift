// MacroCommand.swift - several commands as one.

/// Several commands as one.
///
/// They run until one throws, and the macro throws that error. By itself it takes nothing back then; in a
/// ``TransactionCommand``, what it had done is taken back with the rest. To undo it undoes all of them, in reverse.
public struct MacroCommand: UndoableCommand {
    /// The work that was done, and is not taken back yet.
    public struct Undo: Sendable { let left: Leftovers }

    private let members: [any UndoableCommand]
    private let order: TransactionOptions.Order
    private let compensation: TransactionOptions.Compensation

    /// Creates a macro.
    ///
    /// - Parameters:
    ///   - order: how they run.
    ///   - compensation: what happens when an undo fails.
    /// - Precondition: the limit of a parallel `order` is greater than 0.
    public init(
        _ members: [any UndoableCommand], order: TransactionOptions.Order = .sequential,
        compensation: TransactionOptions.Compensation = .continueOnFailure
    ) {
        if case .parallel(let limit) = order, limit < 1 {
            fatalError("MacroCommand: the limit is \(limit), and must be at least 1")
        }
        self.members = members
        self.order = order
        self.compensation = compensation
    }

    private var run: MemberRun { MemberRun(members: members, order: order, compensation: compensation) }
    private var takesBack: MemberCompensation { MemberCompensation(policy: compensation, observer: nil) }

    /// How far all of them can be taken back.
    public var undoability: Undoability { run.undoability }

    /// Runs them.
    ///
    /// - Throws: the first error, unchanged; a `CancellationError` when it was cancelled before the last one.
    public func perform(_ context: CommandContext) async throws -> Performed<Void, Undo> {
        let end = await run.perform(context)
        let left = Leftovers(end)
        guard let first = end.failures.first else { return Performed(undo: Undo(left: left)) }
        context.onFailure { [takesBack] context in
            let failure = await takesBack.takeBack(left, of: end, context)
            switch failure.rollback {
            case .complete: break
            case .completeExceptIrreversible: throw LeftIrreversible()
            case .incomplete: throw failure
            }
        }
        throw first.error
    }

    /// Undoes them, in reverse.
    ///
    /// - Throws: ``TransactionFailure`` with those that could not be undone; the others are.
    public func undo(_ undo: Undo, _ context: CommandContext) async throws {
        try await takesBack.takeBack(undo.left, context)
    }
}

extension MacroCommand: Renewable {
    func renewedCommand() -> MacroCommand {
        MacroCommand(members.map { renew($0) }, order: order, compensation: compensation)
    }
}

/// A command that cannot be taken back, among those that can.
public struct IrreversibleCommand<Wrapped: Command>: UndoableCommand {
    /// The output of the command.
    public typealias Output = Wrapped.Output
    /// Nothing is known.
    public typealias Undo = Void

    private let command: Wrapped
    private let reason: String

    /// Wraps a command.
    public init(_ command: Wrapped, because reason: String) {
        self.command = command
        self.reason = reason
    }

    /// ``Undoability/irreversible(_:)``.
    public var undoability: Undoability { .irreversible(reason) }

    /// Runs the command.
    public func perform(_ context: CommandContext) async throws -> Performed<Output, Void> {
        Performed(try await command.execute(context))
    }

    /// Does nothing.
    public func undo(_ undo: Void, _ context: CommandContext) async throws {}
}
