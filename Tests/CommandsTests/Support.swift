// Helpers shared by the tests of this module: delegates that record notices, mail from commands to tests.

import Commands
import CompositeOperationsTestSupport
import Dispatch
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Synchronization
import Testing

struct TestError: Error, Equatable {
    var number = 0
}

/// An error with an identity.
final class ErrorObject: Error {}

/// Records each notice, and mails it to the test.
final class Listener: TransactionCommandDelegate {
    struct Notice: Sendable {
        let transaction: CommandTransaction
        let error: (any Error)?
    }

    let log = Log<Notice>()
    let mail = Mail<Notice>()
    private let body: @Sendable (Notice) -> Void

    init(_ body: @escaping @Sendable (Notice) -> Void = { _ in }) { self.body = body }

    func commandTransactionDidSucceed(_ transaction: CommandTransaction) {
        note(Notice(transaction: transaction, error: nil))
    }

    func commandTransaction(_ transaction: CommandTransaction, didFailWithError error: any Error) {
        note(Notice(transaction: transaction, error: error))
    }

    private func note(_ notice: Notice) {
        body(notice)
        log.add(notice)
        mail.send(notice)
    }
}

/// A command that never suspends.
struct Immediate<Output: Sendable>: SynchronousCommand {
    let body: @Sendable (CommandContext) throws -> Output
    init(_ body: @escaping @Sendable (CommandContext) throws -> Output) { self.body = body }
    func execute(_ context: CommandContext) throws -> Output { try body(context) }
}

/// Appends its number to a receiver; its undo removes the number.
struct Append: UndoableCommand {
    let number: Int
    let receiver: Locked<[Int]>
    var failsToPerform = false
    var failsToUndo = false
    var undoability = Undoability.exact
    var log: Log<String>?

    func perform(_ context: CommandContext) async throws -> Performed<Int, Int> {
        log?.add("do \(number)")
        if failsToPerform { throw TestError(number: number) }
        return receiver.withLock { receiver in
            receiver.append(number)
            return Performed(number, undo: receiver.count - 1)
        }
    }

    func undo(_ undo: Int, _ context: CommandContext) async throws {
        log?.add("undo \(number)")
        if failsToUndo { throw TestError(number: -number) }
        if undoability.isExact {
            receiver.withLock { receiver in
                // Only the last number can be removed, which exposes an undo in the wrong order.
                if receiver.indices.last == undo, receiver.last == number { receiver.removeLast() }
            }
        }
    }
}

extension Undoability {
    var isExact: Bool { if case .exact = self { true } else { false } }
}

/// Kernel threads that begin together, for asynchronous tests.
func race<Answer: Sendable>(_ count: Int, _ body: @escaping @Sendable (Int) -> Answer) async -> [Answer] {
    await withCheckedContinuation { continuation in
        elsewhere.async { continuation.resume(returning: concurrently(count, body)) }
    }
}

/// Waits on a separate thread.
func wait<Output>(for handle: CommandHandle<Output>, timeout: Duration? = nil) async -> Outcome<Output>? {
    await withCheckedContinuation { continuation in
        elsewhere.async { continuation.resume(returning: handle.wait(timeout: timeout)) }
    }
}

/// A command that a test holds: it reports that it has begun, and proceeds when it is released.
final class Held: Command, Sendable {
    let begun = Mail<Void>()
    private let goOn = Mail<Void>()

    func execute(_ context: CommandContext) async throws {
        begun.send(())
        await goOn.next()
    }

    func release() { goOn.send(()) }
}

extension Outcome {
    var why: CancelReason.Kind? { reason?.kind }
    var isRequestedCancel: Bool { why == .requested || why == .threwCancellation }
    /// Whether the command was cancelled, rather than impossible to run.
    var isGivenUp: Bool { isRequestedCancel || (error as? TransactionFailure)?.isCancellation == true }
}

/// Calls of a stack, from any task.
@MainActor final class StackCalls {
    private let stack: UndoStack
    init(_ stack: UndoStack) { self.stack = stack }

    /// How often a call found the stack busy.
    private(set) var waiting = 0

    func perform() async throws {
        if stack.isBusy { waiting += 1 }
        try await stack.perform(
            UndoableClosure { (_: CommandContext) in
            } undo: { _ in
            })
    }
    func perform(_ command: some UndoableCommand) async throws { _ = try await stack.perform(command) }
    func undo() async throws { try await stack.undo() }
    func group() async throws { try await stack.group {} }
}

/// The error that a call throws, in its caller's isolation.
nonisolated(nonsending) func thrown(
    _ body: nonisolated(nonsending) () async throws -> Void
) async -> (any Error)? {
    do {
        try await body()
        return nil
    } catch { return error }
}
