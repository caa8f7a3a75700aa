// TransactionOptions.swift - what a transaction command may be told beside its commands.

internal import CompositeOperationsBasics
public import Runs
internal import Scheduling

/// The options of a ``TransactionCommand``.
public struct TransactionOptions: Sendable {
    /// In which order several commands run.
    public enum Order: Hashable, Sendable {
        /// One after another.
        case sequential
        /// At most so many at a time.
        case parallel(limit: Int)
    }

    /// Which commands that cannot be taken back a run of several may hold.
    public enum IrreversiblePolicy: Hashable, Sendable {
        /// Any; a failure lists those that stay.
        case allow
        /// Only after all that can be taken back.
        case onlyAsSuffix
        /// None.
        case refuse
    }

    /// How to go on when an undo fails while a run is taken back, or a part of it that ``CommandContext/onFailure(_:)`` knows.
    ///
    /// Of several commands, a run or a macro, those are tried again that were not taken back yet.
    public indirect enum Compensation: Sendable {
        /// The others are taken back all the same.
        case continueOnFailure
        /// Nothing more is taken back.
        case stopOnFailure
        /// The undo is tried again; when that is over, `then`.
        case retry(RetryPolicy, then: Compensation)
    }

    /// Where the delegate is told.
    public var delivery: Delivery
    /// How the command holds its delegate.
    public var delegateOwnership: DelegateOwnership
    /// In which order several commands run.
    public var order: Order
    /// Which irreversible commands are accepted; looked at before the first one starts.
    public var irreversible: IrreversiblePolicy
    /// How to go on when an undo fails.
    public var compensation: Compensation
    /// Makes of the error of the commands the one that everybody is told; called once for each failing run.
    public var mapError: @Sendable (any Error) -> any Error
    /// Hears what happens in a run, in order, on the thread where it happens; it should be short.
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

/// Something that happened in a run of several commands. Members are named by their place, from 0.
public enum TransactionEvent: Sendable {
    /// The run begins.
    case started
    /// A command returned.
    case finished(member: Int)
    /// A command threw. What is taken back is taken back after this.
    case failed(member: Int, any Error)
    /// A command was taken back.
    case compensated(member: Int)
    /// A command could not be taken back.
    case compensationFailed(member: Int, any Error)
    /// The run ends: all was done, or what could be taken back was.
    case ended
}

/// How often something is tried, and the pauses between.
public struct RetryPolicy: Sendable {
    /// How many attempts there are at most, the first one included.
    public let maxAttempts: Int

    private let backoff: Backoff
    private let clock: any Clock<Duration>
    private let retryIf: @Sendable (any Error) -> Bool

    /// Creates a policy.
    ///
    /// - Parameters:
    ///   - backoff: how long the pauses are.
    ///   - retryIf: whether an error is worth another attempt. A cancellation never is.
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

    /// Calls `body` with the number of the attempt until it returns, or there is no attempt left.
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
