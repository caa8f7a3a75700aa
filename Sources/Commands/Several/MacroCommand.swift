// MacroCommand.swift - several commands as one.

/// Several commands as one.
///
/// The commands run until one throws, and the macro throws that error. On its own, the macro then undoes nothing;
/// in a ``TransactionCommand``, its completed part is rolled back with the rest. Undoing the macro undoes all its
/// commands in reverse order.
public struct MacroCommand: UndoableCommand {
    /// The work that was done and is not yet undone.
    public struct Undo: Sendable { let left: Leftovers }

    private let members: [any UndoableCommand]
    private let order: TransactionOptions.Order
    private let compensation: TransactionOptions.Compensation

    /// Creates a macro.
    ///
    /// - Parameters:
    ///   - order: the order in which the commands run.
    ///   - compensation: how to proceed when an undo fails.
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

    /// How far the commands as a whole can be undone.
    public var undoability: Undoability { run.undoability }

    /// Runs the commands.
    ///
    /// - Throws: the first error, unchanged; a `CancellationError` if the macro was cancelled before the last
    ///   command started.
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

    /// Undoes the commands in reverse order.
    ///
    /// - Throws: a ``TransactionFailure``, which lists the commands that were not undone, and those that were.
    public func undo(_ undo: Undo, _ context: CommandContext) async throws {
        try await takesBack.takeBack(undo.left, context)
    }
}

extension MacroCommand: Renewable {
    func renewedCommand() -> MacroCommand {
        MacroCommand(members.map { renew($0) }, order: order, compensation: compensation)
    }
}

/// Wraps a command without an undo, for use among undoable commands.
public struct IrreversibleCommand<Wrapped: Command>: UndoableCommand {
    /// The output of the command.
    public typealias Output = Wrapped.Output
    /// No proof.
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
