// CommandContext.swift - what a command knows about the run that it is part of.

@_spi(Faces) internal import Runs
internal import Synchronization

/// A command's view of its run.
public struct CommandContext: Sendable {
    /// The run that the command is part of; nil outside any run.
    public internal(set) var transaction: CommandTransaction?
    /// The deadline of the run; nil if it has none, or if ``Command/timeout(_:clock:)`` was given a clock other than
    /// `ContinuousClock`.
    public internal(set) var deadline: ContinuousClock.Instant? {
        get { deadlineObject?.instant }
        set { deadlineObject = newValue.map { Deadline($0) } }
    }
    /// The number of the attempt, from 1; see ``Command/retry(_:)``.
    public internal(set) var attempt = 1
    /// Whether the call undoes work.
    public internal(set) var isCompensating = false

    /// Boxed, since few runs have a deadline, and the layout of an instant is known only at run time: so would be the layout
    /// of a context that stored one inline.
    private var deadlineObject: Deadline?
    /// The innermost run that can be cancelled; nil if there is none.
    private var run: (any Cancellable)?
    /// The runs that enclose `run`.
    private var outer: CancellationLink?
    /// False on a worker, for a run without a task: the current task, if there is one, has nothing to do with the run.
    var looksAtTask = true
    /// Collects the compensation that the command registers; nil if none is run when the command fails.
    var parts: FailureParts?
    /// Set if an earlier attempt undid only part of the work: the rest is to be undone, as ``TransactionOptions/Compensation``
    /// specifies.
    var goesOn = false

    /// A context outside any run.
    public init() {}

    /// A context outside any run, which collects the compensation that is registered.
    init(_ parts: FailureParts) { self.parts = parts }

    /// The context of an outermost run.
    ///
    /// - Parameter looksAtTask: whether the run has its own task.
    init(of run: CommandRun, looksAtTask: Bool) {
        transaction = run.transaction
        self.run = run
        self.looksAtTask = looksAtTask
    }

    /// Whether cancellation of the run was requested. Always false while work is being undone.
    public var isCancelled: Bool {
        if isCompensating { return false }
        if looksAtTask, Task.isCancelled { return true }
        if run?.isCancelRequested == true { return true }
        var link = outer
        while let each = link {
            if each.run.isCancelRequested { return true }
            link = each.outer
        }
        return false
    }

    /// - Throws: `CancellationError` if cancellation of the run was requested.
    public func checkCancellation() throws { if isCancelled { throw CancellationError() } }

    /// Registers compensation to run if this `perform` throws: last registered first, and before the commands that ran earlier
    /// are undone.
    ///
    /// The compensation runs inside a ``TransactionCommand``, according to its ``TransactionOptions/compensation``, and in a
    /// step of an ``UndoStack``. It does not run elsewhere, nor in a ``SynchronousCommand`` that runs on its own. A call that
    /// does not await cannot run it: for a ``SynchronousUndoableCommand``, such a call throws a ``TransactionFailure`` that
    /// reports leftovers.
    public func onFailure(_ undoPart: @escaping @Sendable (CommandContext) async throws -> Void) {
        parts?.add(undoPart)
    }

    /// This context, except that `map` is applied to each compensation that a command registers.
    package func mappingParts(_ map: @escaping FailureParts.Map) -> CommandContext {
        guard let parts else { return self }
        var context = self
        context.parts = FailureParts(into: parts, map)
        return context
    }

    /// Records that code of the command has observed a failure, which it rethrows.
    func noteFailureIsHeard() { (run as? CommandRun)?.noteFailureIsHeard() }

    /// Records that a nested run left something behind, if its error says so.
    func noteLeftovers(of error: any Error) {
        switch leftovers(of: error) {
        case .complete: break
        case .completeExceptIrreversible: onFailure { _ in throw LeftIrreversible() }
        case .incomplete: onFailure { _ in throw FailedBefore(error: error) }
        }
    }

    /// Records the leftovers unless the error that the enclosing run receives already reports them.
    func noteLeftovers(of error: any Error, unlessIn end: Outcome<Never>) {
        if leftovers(of: end.thrown ?? error) != leftovers(of: error) { noteLeftovers(of: error) }
    }

    /// The context for undoing this run's work: neither cancellation nor the deadline applies.
    var compensating: CommandContext {
        var context = CommandContext()
        context.transaction = transaction
        context.isCompensating = true
        return context
    }

    /// The context of a nested run.
    ///
    /// - Parameter inner: the nested run if it can be cancelled separately; else nil.
    consuming func within(_ transaction: CommandTransaction, _ inner: (any Cancellable)?) -> CommandContext {
        self.transaction = transaction
        if let inner {
            outer = run.map { CancellationLink($0, outer: outer) }
            run = inner
        }
        attempt = 1
        parts = nil
        return self
    }
}

private final class Deadline: Sendable {
    let instant: ContinuousClock.Instant
    init(_ instant: ContinuousClock.Instant) { self.instant = instant }
}

/// Anything whose cancellation can be requested.
protocol Cancellable: AnyObject, Sendable {
    var isCancelRequested: Bool { get }
}

/// A run and its enclosing runs.
private final class CancellationLink: Sendable {
    let run: any Cancellable
    let outer: CancellationLink?

    init(_ run: any Cancellable, outer: CancellationLink?) {
        self.run = run
        self.outer = outer
    }
}

/// The compensation that a failing `perform` registered.
package final class FailureParts: Sendable {
    package typealias Part = @Sendable (CommandContext) async throws -> Void
    /// Transforms a part.
    package typealias Map = @Sendable (@escaping Part) -> Part

    /// How to proceed when one of the parts fails.
    let policy: TransactionOptions.Compensation
    private let lock = WordLock()
    // Guarded by `lock`.
    @exclusivity(unchecked) private nonisolated(unsafe) var parts: [Part] = []
    /// Set if the parts are stored in another object, after mapping.
    private let outer: (parts: FailureParts, map: Map)?

    init(_ policy: TransactionOptions.Compensation) { (self.policy, outer) = (policy, nil) }

    fileprivate init(into parts: FailureParts, _ map: @escaping Map) {
        (policy, outer) = (parts.policy, (parts, map))
    }

    func add(_ part: @escaping Part) {
        if let outer { outer.parts.add(outer.map(part)) } else { locked { parts.append(part) } }
    }

    private func locked<Value>(_ body: () -> Value) -> Value {
        let key = UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
        lock.lock(key)
        defer { lock.unlock(key) }
        return body()
    }

    var isEmpty: Bool { locked { parts.isEmpty } }

    /// Removes and returns all parts, in registration order.
    func take() -> [Part] {
        locked {
            defer { parts = [] }
            return parts
        }
    }
}
