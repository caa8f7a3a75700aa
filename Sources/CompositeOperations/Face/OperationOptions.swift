// OperationOptions.swift - options, resolvers.

public import Runs
public import Scheduling

/// The options of an operation. Durations are measured by `clock`.
public struct OperationOptions: Sendable {
    fileprivate struct Fields: Sendable {
        var name: String?
        var handlerTarget: (any ExecutionTarget)?
        var priority: Scheduler.Priority?
        var resolver: COOperationResolver?
        var width: Int?
        var timeout: Duration?
        var attemptTimeout: Duration?
        var deadline: ContinuousClock.Instant?
        var keepsBlock = false
        var context: Scheduler.Context?
        var clock: any Clock<Duration> = ContinuousClock()
    }

    /// One word, so that passing options costs nothing when there are none.
    @usableFromInline
    final class Box: Sendable {
        fileprivate let fields: Fields
        fileprivate init(_ fields: Fields) { self.fields = fields }
    }

    /// nil: all defaults.
    @usableFromInline
    var box: Box?

    private var fields: Fields {
        get { box?.fields ?? Fields() }
        set { box = Box(newValue) }
    }

    @inlinable
    var isStandard: Bool { box == nil }

    /// A name, for descriptions.
    public var name: String? {
        get { box?.fields.name }
        set { fields.name = newValue }
    }

    /// Where its handlers run; nil: on the built-in scheduler.
    public var handlerTarget: (any ExecutionTarget)? {
        get { box?.fields.handlerTarget }
        set { fields.handlerTarget = newValue }
    }

    /// How early its turns come, relative to those of other waiting operations; nil: the priority of the queue that it
    /// is added to, else of its composite, else of the code that starts it. See ``AnyOperation/priority``.
    public var priority: Scheduler.Priority? {
        get { box?.fields.priority }
        set { fields.priority = newValue }
    }

    /// Decides after a failure, a round or an attempt timeout, when no handler does.
    public var resolver: COOperationResolver? {
        get { box?.fields.resolver }
        set { fields.resolver = newValue }
    }

    /// How many children of a transactional operation may be in flight; nil: all.
    ///
    /// - Precondition: greater than 0.
    public var width: Int? {
        get { box?.fields.width }
        set {
            if let newValue, newValue < 1 {
                fatalError("OperationOptions: the width is \(newValue), and must be at least 1")
            }
            fields.width = newValue
        }
    }

    /// The operation is cancelled if it has not ended within this time after its start.
    public var timeout: Duration? {
        get { box?.fields.timeout }
        set { fields.timeout = newValue }
    }

    /// An attempt that has not ended within this time after its beginning is ended as cancelled; a handler or a
    /// resolver may then begin another one.
    public var attemptTimeout: Duration? {
        get { box?.fields.attemptTimeout }
        set { fields.attemptTimeout = newValue }
    }

    /// The operation is cancelled if it has not ended by then; a child is cancelled even while it waits for its
    /// composite to begin it. No block of the operation begins after that. An operation that has not been started yet
    /// ends when it is started.
    public var deadline: ContinuousClock.Instant? {
        get { box?.fields.deadline }
        set { fields.deadline = newValue }
    }

    /// Whether block and closures are kept after the end, for `copy()`.
    public var keepsBlock: Bool {
        get { box?.fields.keepsBlock ?? false }
        set { fields.keepsBlock = newValue }
    }

    /// Which task-local values its block and handlers see: those that are bound where block and handlers are passed to
    /// it, as with `Task { }`, or none; nil: ``COQueues/context`` decides.
    ///
    /// With values bound, this costs about 1 µs each time a block is passed, and each time one runs; with none bound,
    /// about 5 ns.
    public var context: Scheduler.Context? {
        get { box?.fields.context }
        set { fields.context = newValue }
    }

    /// The clock of timeouts and pauses.
    public var clock: any Clock<Duration> {
        get { box?.fields.clock ?? ContinuousClock() }
        set { fields.clock = newValue }
    }

    /// All defaults.
    @inlinable
    public static var standard: OperationOptions { OperationOptions() }

    /// Like ``standard``.
    @inlinable
    public init() { box = nil }

    /// Creates options.
    ///
    /// - Precondition: `width` is greater than 0.
    public init(
        name: String? = nil, handlerTarget: (any ExecutionTarget)? = nil,
        priority: Scheduler.Priority? = nil, resolver: COOperationResolver? = nil,
        width: Int? = nil, timeout: Duration? = nil, attemptTimeout: Duration? = nil,
        deadline: ContinuousClock.Instant? = nil, keepsBlock: Bool = false,
        context: Scheduler.Context? = nil, clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.width = width
        box = Box(
            Fields(
                name: name, handlerTarget: handlerTarget, priority: priority, resolver: resolver,
                width: width, timeout: timeout, attemptTimeout: attemptTimeout, deadline: deadline,
                keepsBlock: keepsBlock, context: context, clock: clock))
    }

    /// The options that are needed after the end.
    var afterTheEnd: OperationOptions {
        OperationOptions(name: name, handlerTarget: handlerTarget, context: context)
    }
}

/// Decides by a rule: another attempt after a pause, while there are attempts left.
///
/// Used from a decision handler, from an attempt, or as ``OperationOptions/resolver``.
public struct COOperationResolver: Sendable {
    /// How a composite is redone; a leaf always reruns.
    public enum Redo: Sendable {
        /// Its block runs again.
        case rerun
        /// The children that have not finished are redone. If the block had not registered all children, the same as
        /// `rerun`.
        case awake
    }

    /// The maximum number of attempts, the first one included.
    public let maxAttempts: Int
    /// The pauses.
    public let backoff: Backoff
    /// How a composite is redone.
    public let redo: Redo
    /// The clock of the pauses.
    public let clock: any Clock<Duration>
    let retryIf: (@Sendable (Cause) -> Bool)?
    let fallback: (@Sendable (AnyOperation) -> Void)?

    // Disfavored: a lone trailing closure is the fallback.
    /// Creates a resolver.
    ///
    /// - Parameter retryIf: whether a cause is worth another attempt; called like a handler.
    /// - Precondition: `maxAttempts` is greater than 0; an exponential backoff has a factor of at least 1, and a jitter from 0 to 1.
    @_disfavoredOverload
    public init(
        maxAttempts: Int = 10, backoff: Backoff = .none, redo: Redo = .awake,
        clock: any Clock<Duration> = ContinuousClock(), retryIf: (@Sendable (Cause) -> Bool)? = nil
    ) {
        self.init(
            maxAttempts: maxAttempts, backoff: backoff, redo: redo, clock: clock, retryIf: retryIf,
            fallback: nil)
    }

    // The fallback has no default value: otherwise a lone trailing closure would be `retryIf`.
    /// Creates a resolver with a fallback. A lone trailing closure is the fallback.
    ///
    /// ```swift
    /// COOperationResolver(maxAttempts: 3) { operation in operation.cancel() }
    /// ```
    ///
    /// - Parameters:
    ///   - retryIf: whether a cause is worth another attempt; called like a handler.
    ///   - fallback: called once, like a handler, when no attempt is left, or none is wanted. It may cancel, finish or
    ///     fail the operation; if it does not, the operation ends by the cause of the decision.
    /// - Precondition: `maxAttempts` is greater than 0; an exponential backoff has a factor of at least 1, and a jitter from 0 to 1.
    public init(
        maxAttempts: Int = 10, backoff: Backoff = .none, redo: Redo = .awake,
        clock: any Clock<Duration> = ContinuousClock(), retryIf: (@Sendable (Cause) -> Bool)? = nil,
        fallback: (@Sendable (AnyOperation) -> Void)?
    ) {
        if maxAttempts < 1 {
            fatalError("COOperationResolver: maxAttempts is \(maxAttempts), and must be at least 1")
        }
        backoff.check(for: "COOperationResolver")
        self.maxAttempts = maxAttempts
        self.backoff = backoff
        self.redo = redo
        self.clock = clock
        self.retryIf = retryIf
        self.fallback = fallback
    }

    /// Whether user code has to be called before the decision.
    var asksUser: Bool {
        if case .custom = backoff { return true }
        return retryIf != nil
    }
}
