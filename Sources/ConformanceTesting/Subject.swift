// Subject.swift - schedulers that are tested: how one is made, and its abilities.

/// A scheduler that is tested: an executor, a queue, a task executor, or a library of operations.
public struct Subject: Sendable {
    /// Its name, in tables.
    public let name: String
    /// Makes one for a case. Threads: the one that checks.
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

/// A scheduler, by its abilities. An ability that is nil is not claimed, and the laws about it are not asked.
///
/// Every closure may be called by any thread, by many at a time, and by what the instance runs.
public struct Instance: Sendable {
    /// A closure to run.
    public typealias Body = @Sendable () -> Void

    /// Has a closure run some time. Does not wait for what it has run: laws hold closures back while they submit others.
    public var submit: @Sendable (@escaping Body) -> Void
    /// Its promises that none of the closures here shows.
    public var claims: Set<Claim>
    /// How many closures it runs at a time, at most.
    public var width: Int?
    /// Returns when all closures that were submitted before have ended.
    public var drain: Body?
    /// Nothing more starts after the first has returned, until the second is called.
    public var suspension: Suspension?
    /// Has a closure run after all that were submitted before, and before all that are submitted after it.
    public var barrier: (@Sendable (@escaping Body) -> Void)?
    /// Has a closure run when the time has passed.
    public var submitAfter: (@Sendable (Duration, @escaping Body) -> Void)?
    /// Calls the closure with each number below the first parameter, and returns when all have.
    public var forEach: (@Sendable (Int, @escaping @Sendable (Int) -> Void) -> Void)?
    /// Has an operation run, after others have ended.
    public var operation:
        (@Sendable (_ after: [TestedOperation], @escaping TestedOperation.Body) -> TestedOperation)?
    /// Runs tasks.
    public var taskExecutor: (any TaskExecutor)?
    /// Whether the calling code is run by it.
    public var isHere: (@Sendable () -> Bool)?
    /// Ends it: what it runs ends before this returns.
    public var shutDown: Body?
    /// Releases what it has, after the case; also where ``shutDown`` has returned. Nothing is submitted afterwards.
    public var end: Body

    /// Creates an instance that runs closures, and claims no more: the rest is set.
    public init(
        claims: Set<Claim> = [], submit: @escaping @Sendable (@escaping Body) -> Void,
        end: @escaping Body = {}
    ) {
        self.claims = claims
        self.submit = submit
        self.end = end
    }
}

/// How what starts is held back.
public struct Suspension: Sendable {
    /// Holds it back.
    public var suspend: Instance.Body
    /// Lets it go on.
    public var resume: Instance.Body

    /// Creates a suspension.
    public init(suspend: @escaping Instance.Body, resume: @escaping Instance.Body) {
        self.suspend = suspend
        self.resume = resume
    }
}

/// A promise of a scheduler.
public enum Claim: String, Hashable, Sendable, CaseIterable {
    /// Closures are never run inside of `submit`.
    case asynchronous
    /// Closures begin in the order in which a thread submits them.
    case fifo
    /// As many closures may block as there are: others run all the same.
    case outlastsBlocking
    /// A closure that submits itself without end, or a task that yields without end, does not keep others from their turn.
    case fair
    /// After two suspends it takes two resumes.
    case nestedSuspension
    /// Closures that were submitted before `shutDown` run.
    case runsAllAtShutdown
    /// `forEach` may be called inside of `forEach`.
    case nestedLoops
    /// Operations can fail.
    case failures
    /// Operations can be cancelled.
    case cancellation
    /// An operation begins after those that it comes after.
    case dependencies
    /// Handlers may be added when an operation has ended.
    case lateHandlers
}

/// An operation of a subject.
public struct TestedOperation: Sendable {
    /// The body; its parameter tells whether the operation was cancelled.
    public typealias Body = @Sendable (_ isCancelled: @Sendable () -> Bool) throws -> Void

    /// How it ended.
    public enum End: String, Hashable, Sendable {
        /// Its body has returned.
        case finished
        /// Its body threw an error.
        case failed
        /// The operation was cancelled.
        case cancelled
    }

    /// Asks it to end.
    public var cancel: Instance.Body
    /// Has a closure called when it has ended.
    public var whenEnded: @Sendable (@escaping @Sendable (End) -> Void) -> Void
    /// The operation of the subject's own library.
    public let base: any Sendable

    /// Creates one.
    public init(
        base: any Sendable, cancel: @escaping Instance.Body,
        whenEnded: @escaping @Sendable (@escaping @Sendable (End) -> Void) -> Void
    ) {
        self.base = base
        self.cancel = cancel
        self.whenEnded = whenEnded
    }
}
