// TransactionCommandFactory.swift - where creators of commands get their transaction commands, so that tests can fake it.

/// Makes transaction commands. Creators of commands take one, and return the command's token or handle to their clients.
public protocol TransactionCommandFactory: Sendable {
    /// Wraps a command.
    func make<C: Command>(_ command: C, delegate: (any TransactionCommandDelegate)?)
        -> TransactionCommand<C.Output>
}

/// Makes ordinary transaction commands.
public struct TransactionCommands: TransactionCommandFactory {
    /// The options of all of them.
    public let options: TransactionOptions

    /// Creates a factory.
    public init(options: TransactionOptions = TransactionOptions()) { self.options = options }

    /// Wraps a command; one that can be undone can be undone then, too.
    public func make<C: Command>(_ command: C, delegate: (any TransactionCommandDelegate)?)
        -> TransactionCommand<C.Output>
    {
        guard let undoable = command as? any UndoableCommand<C.Output> else {
            return TransactionCommand(command, delegate: delegate, options: options)
        }
        return TransactionCommand(undoable, delegate: delegate, options: options)
    }
}
