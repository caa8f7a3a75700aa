// TransactionOptions.swift - the options of a transaction command.

internal import CompositeOperationsBasics
public import Runs
internal import Scheduling

/// The options of a ``TransactionCommand``.
public struct TransactionOptions: Sendable {
    /// The order in which several commands run.
    public enum Order: Hashable, Sendable {
        /// One after another.
        case sequential
        /// At most `limit` at a time.
        case parallel(limit: Int)
    }

    /// Which irreversible commands a run of several commands may contain.
    public enum IrreversiblePolicy: Hashable, Sendable {
        /// Any; a failure lists the ones whose effects remain.
        case allow
        /// Only after all commands that can be undone.
        case onlyAsSuffix
        /// None.
        case refuse
    }

    /// How to proceed when an undo, or a part registered with ``CommandContext/onFailure(_:)``, fails during a rollback.
    ///
    /// When the undo of a run of several commands, or of a macro, is retried, only the commands that are not yet undone
    /// are undone.
    public indirect enum Compensation: Sendable {
        /// The other commands are still undone.
        case continueOnFailure
        /// Nothing more is undone.
        case stopOnFailure
        /// The undo is retried; when no attempt is left, `then` applies.
        case retry(RetryPolicy, then: Compensation)
    }

    /// Where the delegate is notified.
    public var delivery: Delivery
    /// How the command holds its delegate.
    public var delegateOwnership: DelegateOwnership
    /// The order in which several commands run.
    public var order: Order
    /// Which irreversible commands are accepted; checked before the first command starts.
    public var irreversible: IrreversiblePolicy
    /// How to proceed when an undo fails.
    public var compensation: Compensation
    /// Maps the commands' error to the error that is reported; called once for each failing run.
    public var mapError: @Sendable (any Error) -> any Error
    /// Called with the events of a run, in order, each on the thread where it occurs. Should return quickly.
    public var observer: (@Sendable (TransactionEvent) -> Void)?

    /// Creates options.
    public init(
        delivery: Delivery = .inline, delegateOwnership: DelegateOwnership = .strongUntilTerminal,
        order: Order = .sequential, irreversible: IrreversiblePolicy = .allow,
        compensation: Compensation = .continueOnFailure,
        mapError: @escaping @Sendable (any Error) -> any Error = { $0 },
        observer: (@Sendable (TransactionEvent) -> Void)? = nil
    ) {
        self.delivery = delivery
        self.delegateOwnership = delegateOwnership
        self.order = order
        self.irreversible = irreversible
        self.compensation = compensation
        self.mapError = mapError
        self.observer = observer
    }
}

/// Something that happened in a run of several commands. Members are identified by index, from 0.
public enum TransactionEvent: Sendable {
    /// The run begins.
    case started
    /// A command returned.
    case finished(member: Int)
    /// A command threw. Any rollback follows this event.
    case failed(member: Int, any Error)
    /// A command was undone.
    case compensated(member: Int)
    /// A command could not be undone.
    case compensationFailed(member: Int, any Error)
    /// The run ends: everything was done, or the rollback is over.
    case ended
}

/// How often something is attempted, and the pauses between attempts.
public struct RetryPolicy: Sendable {
    /// The maximum number of attempts, including the first.
    public let maxAttempts: Int

    private let backoff: Backoff
    private let clock: any Clock<Duration>
    private let retryIf: @Sendable (any Error) -> Bool

    /// Creates a policy.
    ///
    /// - Parameters:
    ///   - backoff: the length of the pauses.
    ///   - retryIf: whether an error is worth another attempt. A cancellation is never retried.
    /// - Precondition: `maxAttempts` is greater than 0.
    public init(
        maxAttempts: Int, backoff: Backoff = .none,
        clock: any Clock<Duration> = ContinuousClock(),
        retryIf: @escaping @Sendable (any Error) -> Bool = { _ in true }
    ) {
        demand(maxAttempts > 0, "RetryPolicy: maxAttempts is \(maxAttempts), and must be at least 1")
        backoff.check(for: "RetryPolicy")
        self.maxAttempts = maxAttempts
        self.backoff = backoff
        self.clock = clock
        self.retryIf = retryIf
    }

    /// Calls `body` with the attempt number until it returns or no attempt is left.
    func run<Value>(_ body: (Int) async throws -> Value) async throws -> Value {
        var attempt = 1
        while true {
            do { return try await body(attempt) } catch {
                if attempt >= maxAttempts || isCancellation(error) || !retryIf(error) {
                    throw error
                }
            }
            let pause = backoff.pause(after: attempt)
            if pause > .zero { try await sleep(for: pause, by: clock) }
            attempt += 1
        }
    }
}
