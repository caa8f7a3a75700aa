// TransactionCommandFactory.swift - the source of transaction commands, which tests can replace with a fake.

/// Makes transaction commands. Code that creates commands takes a factory, and returns the command's token or handle to
/// its clients.
public protocol TransactionCommandFactory: Sendable {
    /// Wraps a command.
    func make<C: Command>(_ command: C, delegate: (any TransactionCommandDelegate)?)
        -> TransactionCommand<C.Output>
}

/// Makes ordinary transaction commands.
public struct TransactionCommands: TransactionCommandFactory {
    /// The options of all commands that the factory makes.
    public let options: TransactionOptions

    /// Creates a factory.
    public init(options: TransactionOptions = TransactionOptions()) { self.options = options }

    /// Wraps a command; an undoable command stays undoable.
    public func make<C: Command>(_ command: C, delegate: (any TransactionCommandDelegate)?)
        -> TransactionCommand<C.Output>
    {
        guard let undoable = command as? any UndoableCommand<C.Output> else {
            return TransactionCommand(command, delegate: delegate, options: options)
        }
        return TransactionCommand(undoable, delegate: delegate, options: options)
    }
}
