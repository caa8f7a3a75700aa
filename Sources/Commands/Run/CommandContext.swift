// CommandContext.swift - what a command is told about the run that it is part of.

@_spi(Faces) internal import Runs
internal import Synchronization

/// The run, as its command sees it.
public struct CommandContext: Sendable {
    /// The run that it is part of; nil outside of any.
    public internal(set) var transaction: CommandTransaction?
    /// When its time is over; nil: never, or on a clock of its own (``Command/timeout(_:clock:)``).
    public internal(set) var deadline: ContinuousClock.Instant? {
        get { deadlineObject?.instant }
        set { deadlineObject = newValue.map { Deadline($0) } }
    }
    /// Which attempt this is, from 1; see ``Command/retry(_:)``.
    public internal(set) var attempt = 1
    /// Whether the call takes work back.
    public internal(set) var isCompensating = false

    /// An object, as few runs have one: the layout of an instant is known at run time alone, and so would be that of a context.
    private var deadlineObject: Deadline?
    /// The run that can be asked to end; nil: there is none.
    private var run: (any Cancellable)?
    /// The runs around it.
    private var outer: CancellationLink?
    /// On a worker without a task of the run's own, the task that is found, if any, has nothing to do with it.
    var looksAtTask = true
    /// nil: nothing is taken back when this one fails.
    var parts: FailureParts?
    /// Work is taken back that was not taken back whole before: what is left is, as ``TransactionOptions/Compensation`` says.
    var goesOn = false

    /// A context outside of any run.
    public init() {}

    /// That of a run in no other one.
    ///
    /// - Parameter looksAtTask: whether it has a task of its own.
    init(of run: CommandRun, looksAtTask: Bool) {
        transaction = run.transaction
        self.run = run
        self.looksAtTask = looksAtTask
    }

    /// Whether somebody asked for the run to end. Never while work is taken back.
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

    /// - Throws: `CancellationError` when somebody asked for the run to end.
    public func checkCancellation() throws { if isCancelled { throw CancellationError() } }

    /// Says what is to be taken back should this `perform` throw: last first, before the commands that ran before it.
    ///
    /// Inside a ``TransactionCommand``, as its ``TransactionOptions/compensation`` says, and in a step of an ``UndoStack``;
    /// elsewhere, and in a ``SynchronousCommand`` that is run by itself, nobody takes anything back. A call that does not await
    /// cannot: of a ``SynchronousUndoableCommand`` it throws a ``TransactionFailure`` then, which says that something is left.
    public func onFailure(_ undoPart: @escaping @Sendable (CommandContext) async throws -> Void) {
        parts?.add(undoPart)
    }

    /// This context, where what a command says is to be taken back is what `map` makes of it.
    package func mappingParts(_ map: @escaping FailureParts.Map) -> CommandContext {
        guard let parts else { return self }
        var context = self
        context.parts = FailureParts(into: parts, map)
        return context
    }

    /// Code of the command's is told of a failure, which it passes on.
    func noteFailureIsHeard() { (run as? CommandRun)?.noteFailureIsHeard() }

    /// Says that a run inside of this one left something, as its failure says.
    func noteLeftovers(of error: any Error) {
        switch leftovers(of: error) {
        case .complete: break
        case .completeExceptIrreversible: onFailure { _ in throw LeftIrreversible() }
        case .incomplete: onFailure { _ in throw FailedBefore(error: error) }
        }
    }

    /// Says so where the error that the run around it is thrown does not say it.
    func noteLeftovers(of error: any Error, unlessIn end: Outcome<Never>) {
        if leftovers(of: end.thrown ?? error) != leftovers(of: error) { noteLeftovers(of: error) }
    }

    /// The context of what takes this run's work back: cancellation and deadline do not reach it.
    var compensating: CommandContext {
        var context = CommandContext()
        context.transaction = transaction
        context.isCompensating = true
        return context
    }

    /// The context of a run inside of this one.
    ///
    /// - Parameter inner: nil: nobody asks for that run alone to end.
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

/// Anything that can be asked to end.
protocol Cancellable: AnyObject, Sendable {
    var isCancelRequested: Bool { get }
}

/// A run, and those around it.
private final class CancellationLink: Sendable {
    let run: any Cancellable
    let outer: CancellationLink?

    init(_ run: any Cancellable, outer: CancellationLink?) {
        self.run = run
        self.outer = outer
    }
}

/// The work that a failing `perform` left to take back.
package final class FailureParts: Sendable {
    package typealias Part = @Sendable (CommandContext) async throws -> Void
    /// Makes another one of a part.
    package typealias Map = @Sendable (@escaping Part) -> Part

    /// How to go on when one of them fails.
    let policy: TransactionOptions.Compensation
    private let lock = WordLock()
    // Under `lock` alone.
    @exclusivity(unchecked) private nonisolated(unsafe) var parts: [Part] = []
    /// They are among others.
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

    /// All of them, once; in their order.
    func take() -> [Part] {
        locked {
            defer { parts = [] }
            return parts
        }
    }
}
