// OperationHandle.swift - an operation with the type of its value.

public import Runs

/// An operation that produces a value of type `Success` when it finishes.
public class OperationHandle<Success: Sendable>: AnyOperation, @unchecked Sendable {
    // Unchecked: as in `AnyOperation`.

    @inline(__always)
    override init(_ blockKind: BlockKind, plainChildOf composite: __shared AnyOperation) {
        super.init(blockKind, plainChildOf: composite)
    }

    override init(endedIn tree: Domain) { super.init(endedIn: tree) }

    @inline(__always)
    override init(
        on target: (any ExecutionTarget)?, options: OperationOptions?, composition: Composition?,
        within composite: AnyOperation?, admission queue: COOperationQueue? = nil
    ) {
        super.init(
            on: target, options: options, composition: composition, within: composite, admission: queue)
    }

    deinit { if hasValue { storage.destroy(Success.self) } }

    /// Its value. Read under the lock, or by code that began after the value was stored.
    @inlinable
    @inline(__always)
    final var storedValue: Success { storage.load(Success.self) }

    /// Under the lock; it has not ended.
    @inline(__always)
    final func store(_ value: Success) {
        precondition(!hasValue && badEnd == nil)
        storage.store(value)
        hasValue = true
    }

    /// Stores the value if `give` provides one. Under the lock; it has not ended.
    ///
    /// - Parameter give: initializes the value; false: there is none.
    /// - Returns: as `give`.
    final func store(_ give: (UnsafeMutablePointer<Success>) -> Bool) -> Bool {
        precondition(!hasValue && badEnd == nil)
        hasValue = storage.store(give)
        return hasValue
    }

    /// How it ended; nil before its end.
    public final var result: Outcome<Success>? { look { machine.isTerminal ? decidedOutcome : nil } }

    /// Under the lock; it is decided.
    final var decidedOutcome: Outcome<Success> {
        switch badEnd?.outcome {
        case .failed(let error)?:
            seeFailure()
            return .failed(error)
        case .cancelled(let reason)?: return .cancelled(reason)
        case nil:
            if !hasValue { fatalError("\(kindName): finished without a value") }
            return .finished(storedValue)
        }
    }

    /// How it ended; waits for the end. Cancelling the waiting task cancels nothing.
    public final var outcome: Outcome<Success> {
        get async {
            await awaitEnd()
            return endedOutcome
        }
    }

    /// Its value; waits for the end. Throws the error that it failed with, or a ``CancelReason``.
    public final var value: Success {
        get async throws { try await outcome.get() }
    }

    final var endedOutcome: Outcome<Success> {
        guard let result else { fatalError("\(kindName): it has not ended") }
        return result
    }

    /// Calls `handler` once with the outcome, even if the operation has already ended.
    ///
    /// Handlers of one operation run one at a time, after its closures, in the order in which they were added.
    ///
    /// - Parameter target: where `handler` runs; nil: where the operation's handlers run.
    @discardableResult
    public final func onOutcome(
        on target: (any ExecutionTarget)? = nil, _ handler: @escaping @Sendable (Outcome<Success>) -> Void
    ) -> Self {
        addOutcomeHandler(on: target) { operation in
            handler(unsafeDowncast(operation, to: OperationHandle<Success>.self).endedOutcome)
        }
        return self
    }

    /// Starts it, unless it has been started, and waits for its value. Cancelling the waiting task cancels the
    /// operation.
    ///
    /// - Throws: the error that it failed with, a ``CancelReason``, or, when it could not be started and has not been
    ///   started elsewhere, ``RegistrationError/hasParent`` or ``RegistrationError/hasNoBlock``.
    public final func run() async throws -> Success {
        if look({ machine.phase == .ready }), !start(), let refusal = look({ refusalOfStart }) {
            throw refusal
        }
        return try await withTaskCancellationHandler {
            try await value
        } onCancel: {
            cancel(CancelReason(.taskCancelled))
        }
    }

    /// Why it is still not started. Under the lock.
    private final var refusalOfStart: RegistrationError? {
        guard machine.phase == .ready else { return nil }
        return isChild ? .hasParent : .hasNoBlock
    }

    /// Blocks the calling thread until it has ended.
    ///
    /// On a worker of a scheduler, the call runs blocks of this operation and its descendants that are queued on that
    /// worker, nested on the worker's stack, and no other blocks. When there are none, the thread sleeps, and another
    /// worker takes its place. On the main thread, the main queue is served.
    ///
    /// On the stack of the operation's own block, or of a descendant's, a wait without a limit could never end. In
    /// debug builds it stops the process and names the blocks on that stack.
    ///
    /// - Parameter timeout: how long to wait at most; nil: for ever. With a timeout, a worker runs nothing meanwhile.
    ///   The operation continues after the timeout.
    /// - Returns: the outcome; nil when the timeout expired first.
    @available(*, noasync, message: "Blocks the thread; use `outcome` or `value`.")
    @discardableResult
    public final func wait(timeout: Duration? = nil) -> Outcome<Success>? {
        waitForEnd(timeout: timeout) ? endedOutcome : nil
    }

    /// A new operation with the same block, options and closures for its end: ready, attempt 0. Handlers added with
    /// ``onOutcome(on:_:)`` are not copied.
    ///
    /// An operation that has ended has released its block, closures, target, queue and options, except the name, the
    /// handler target and the context, so its copy has none of them; ``OperationOptions/keepsBlock`` prevents that. (A
    /// sync operation keeps its target and queue.) The copy of a step that takes the value of an earlier one takes the
    /// same value, and fails with ``RegistrationError/notAnEarlierStep`` if that step has not finished.
    ///
    /// - Complexity: O(1).
    public final func copy() -> Self { unsafeDowncast(makeCopy(), to: Self.self) }

    /// Gives an unpublished copy the part of the extras that it inherits.
    final func copyExtras(to copy: OperationHandle<Success>) {
        let former = look { extras.map { ForCopy($0) } }
        if copy.extras == nil, former?.isEmpty ?? true { return }
        let made = copy.ensureExtras()
        made.options = former?.options
        made.scope = former?.scope  // not the default queue in force where the copy is made
        made.context = former?.context
        made.completion = former?.completion
        made.cancellation = former?.cancellation
        made.failure = former?.failure
    }
}

/// The part of the extras that a copy inherits. Not a tuple: a closure in a generic result would be wrapped in another
/// closure, one more with each copy of a copy.
private struct ForCopy {
    var options: OperationOptions?
    var scope: COQueues.Scope?
    var context: OperationContext?
    var completion: (@Sendable () -> Void)?
    var cancellation: (@Sendable () -> Void)?
    var failure: (@Sendable (any Error) -> Void)?

    init(_ extras: Extras) {
        options = extras.options
        scope = extras.scope
        context = extras.context
        completion = extras.completion
        cancellation = extras.cancellation
        failure = extras.failure
    }

    var isEmpty: Bool {
        options == nil && scope == nil && context == nil && completion == nil && cancellation == nil
            && failure == nil
    }
}
