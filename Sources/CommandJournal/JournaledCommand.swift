// JournaledCommand.swift - a command that can be written down, and done by another process.

public import Commands

/// A command that a ``CommandJournal`` can write down, and that another process can do, or take back, after a crash.
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
/// The journal holds its encoding, as JSON, and that of its output. An encoding has to be the same each time: a
/// `Set`, or a dictionary whose keys are no strings, has an order that changes from process to process.
public protocol JournaledCommand<Output>: UndoableCommand, Codable where Output: Codable, Undo: Codable {
    /// The name of the type in the journal: unique, and the same in every version of the program.
    static var journalName: String { get }

    /// The name of this one piece of work, and of nothing else, for ever; nil: it has none.
    ///
    /// Work with a key may be begun again when nobody knows whether it was done. So whoever does it has to see to it, by the key,
    /// that it has its effect once: a second `perform` with the same key has none, and returns what the first one returned; a
    /// second `undo` has none. Without a key the journal begins nothing a second time, and reports it.
    ///
    /// Keys are equal as strings are: "é" is one key, whether it is written as one Unicode scalar or as two.
    var idempotencyKey: String? { get }
}

/// Thrown by a command that knows that its work was not done: not by this call, nor by an earlier one with the same key.
///
/// When recovery begins a command again, any other error says nothing of the call before the crash, which may have had its
/// effect. So that command stays in doubt, and the next recovery begins it again; this error ends it as failed. In its first call
/// it is like any other error.
///
/// - SeeAlso: `OutcomeUnknown`, its opposite.
public struct NotDone: Error {
    /// Why it was not done.
    public let cause: any Error

    /// Creates one.
    public init(because cause: any Error) { self.cause = cause }
}

/// The output, or the proof, of a command that has none: `Void` cannot be written down.
public struct Nothing: Codable, Hashable, Sendable {
    /// Nothing.
    public init() {}
}

extension Performed where Output == Nothing {
    /// Work without an output was done.
    public init(undo: Undo) { self.init(Nothing(), undo: undo) }
}

extension Performed where Output == Nothing, Undo == Nothing {
    /// Work was done that has no output, and whose undoing needs to know nothing.
    public init() { self.init(Nothing(), undo: Nothing()) }
}
