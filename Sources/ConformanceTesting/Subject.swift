// Subject.swift - schedulers under test: how to create one, and its abilities.

/// A scheduler under test: an executor, a queue, a task executor, or a library of operations.
public struct Subject: Sendable {
    /// Its name, in tables.
    public let name: String
    /// Creates an instance for a case. Called on the checking thread.
    public let make: @Sendable () throws -> Instance

    /// Creates a subject.
    public init(_ name: String, make: @escaping @Sendable () throws -> Instance) {
        self.name = name
        self.make = make
    }
}

extension Subject: CustomStringConvertible {
    /// Its name.
    public var description: String { name }
}

/// A scheduler, described by its abilities. An ability that is nil is not claimed, and the laws about it are
/// not checked.
///
/// Every closure may be called by any thread, concurrently, and by the closures that the instance runs.
public struct Instance: Sendable {
    /// A closure to run.
    public typealias Body = @Sendable () -> Void

    /// Submits a closure to be run at some time. Must not wait for earlier closures: laws hold closures back
    /// while they submit others.
    public var submit: @Sendable (@escaping Body) -> Void
    /// Its promises that none of the closures below expresses.
    public var claims: Set<Claim>
    /// The maximum number of closures that run at a time.
    public var width: Int?
    /// Returns when all closures that were submitted before have ended.
    public var drain: Body?
    /// Suspends and resumes: after `suspend` has returned, no closure starts until `resume` is called.
    public var suspension: Suspension?
    /// Submits a closure that runs after all closures submitted before it, and before all submitted after it.
    public var barrier: (@Sendable (@escaping Body) -> Void)?
    /// Submits a closure that runs after the given time.
    public var submitAfter: (@Sendable (Duration, @escaping Body) -> Void)?
    /// Calls the closure with each number below the first parameter, and returns when all calls have
    /// returned.
    public var forEach: (@Sendable (Int, @escaping @Sendable (Int) -> Void) -> Void)?
    /// Starts an operation that runs after others have ended.
    public var operation:
        (@Sendable (_ after: [TestedOperation], @escaping TestedOperation.Body) -> TestedOperation)?
    /// Runs tasks.
    public var taskExecutor: (any TaskExecutor)?
    /// Whether the instance runs the calling code.
    public var isHere: (@Sendable () -> Bool)?
    /// Shuts the instance down: its running closures end before this returns.
    public var shutDown: Body?
    /// Releases its resources after the case, even after ``shutDown`` has returned. Nothing is submitted
    /// afterwards.
    public var end: Body

    /// Creates an instance that runs closures and claims nothing else; set the other abilities afterwards.
    public init(
        claims: Set<Claim> = [], submit: @escaping @Sendable (@escaping Body) -> Void,
        end: @escaping Body = {}
    ) {
        self.claims = claims
        self.submit = submit
        self.end = end
    }
}

/// The functions that suspend and resume a subject.
public struct Suspension: Sendable {
    /// Suspends the start of closures.
    public var suspend: Instance.Body
    /// Resumes the start of closures.
    public var resume: Instance.Body

    /// Creates a suspension.
    public init(suspend: @escaping Instance.Body, resume: @escaping Instance.Body) {
        self.suspend = suspend
        self.resume = resume
    }
}

/// A promise of a scheduler.
public enum Claim: String, Hashable, Sendable, CaseIterable {
    /// Closures are never run inside `submit`.
    case asynchronous
    /// Closures begin in the order in which a thread submits them.
    case fifo
    /// Any number of closures may block: others still run.
    case outlastsBlocking
    /// A closure that submits itself without end, or a task that yields without end, does not starve others.
    case fair
    /// Two suspends need two resumes.
    case nestedSuspension
    /// Closures that were submitted before `shutDown` run.
    case runsAllAtShutdown
    /// `forEach` may be called inside `forEach`.
    case nestedLoops
    /// Operations can fail.
    case failures
    /// Operations can be cancelled.
    case cancellation
    /// An operation begins after its dependencies have ended.
    case dependencies
    /// Handlers may be added after an operation has ended.
    case lateHandlers
}

/// An operation of a subject.
public struct TestedOperation: Sendable {
    /// The body; its parameter returns whether the operation was cancelled.
    public typealias Body = @Sendable (_ isCancelled: @Sendable () -> Bool) throws -> Void

    /// The way an operation ended.
    public enum End: String, Hashable, Sendable {
        /// Its body has returned.
        case finished
        /// Its body threw an error.
        case failed
        /// The operation was cancelled.
        case cancelled
    }

    /// Cancels the operation.
    public var cancel: Instance.Body
    /// Adds a closure that is called when the operation has ended.
    public var whenEnded: @Sendable (@escaping @Sendable (End) -> Void) -> Void
    /// The operation of the subject's own library.
    public let base: any Sendable

    /// Creates an operation.
    public init(
        base: any Sendable, cancel: @escaping Instance.Body,
        whenEnded: @escaping @Sendable (@escaping @Sendable (End) -> Void) -> Void
    ) {
        self.base = base
        self.cancel = cancel
        self.whenEnded = whenEnded
    }
}
