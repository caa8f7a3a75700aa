// JournaledCommand.swift - a command that can be recorded, and executed by another process.

public import Commands

/// A command that a ``CommandJournal`` can record, and that another process can do or undo after a crash.
///
/// ```swift
/// struct Deposit: JournaledCommand {
///     static let journalName = "deposit"
///     let account: String, amount: Int, order: String
///     var idempotencyKey: String? { "deposit \(order)" }
///     func perform(_ context: CommandContext) async throws -> Performed<Int, Nothing> { … }
///     func undo(_ undo: Nothing, _ context: CommandContext) async throws { … }
/// }
/// ```
///
/// The journal holds its encoding, as JSON, and that of its output. The encoding must be the same each time: the order of a
/// `Set`, or of a dictionary whose keys are not strings, changes from process to process.
public protocol JournaledCommand<Output>: UndoableCommand, Codable where Output: Codable, Undo: Codable {
    /// The name of the type in the journal: unique, and the same in every version of the program.
    static var journalName: String { get }

    /// The permanent name of this one piece of work, and of nothing else; nil if it has none.
    ///
    /// Work with a key may be begun again when it is unknown whether it was done. So its receiver must use the key to apply the
    /// effect only once: a second `perform` with the same key has no effect, and returns the result of the first; a second `undo`
    /// has no effect. Without a key the journal begins nothing a second time, and reports the command as in doubt.
    ///
    /// Keys are compared as strings: "é" is one key, whether it is written as one Unicode scalar or as two.
    var idempotencyKey: String? { get }
}

/// Thrown by a command that knows that its work was not done, neither by this call nor by an earlier one with the same key.
///
/// When recovery begins a command again, any other error says nothing about the call before the crash, which may have had its
/// effect. So that command stays in doubt, and the next recovery begins it again; this error ends it as failed. In the first call
/// of a command it is like any other error.
///
/// - SeeAlso: `OutcomeUnknown`, its opposite.
public struct NotDone: Error {
    /// Why it was not done.
    public let cause: any Error

    /// Creates the error.
    public init(because cause: any Error) { self.cause = cause }
}

/// The output, or the proof, of a command that has none: `Void` cannot be encoded.
public struct Nothing: Codable, Hashable, Sendable {
    /// Nothing.
    public init() {}
}

extension Performed where Output == Nothing {
    /// Work without an output was done.
    public init(undo: Undo) { self.init(Nothing(), undo: undo) }
}

extension Performed where Output == Nothing, Undo == Nothing {
    /// Work without an output was done, and its undo needs no data.
    public init() { self.init(Nothing(), undo: Nothing()) }
}
