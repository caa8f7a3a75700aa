/// A failure of the scheduler that the caller can handle.
public struct SchedulerError: Error, Hashable, Sendable {
    /// The kind of error.
    public enum Code: Hashable, Sendable, CaseIterable {
        /// Memory is exhausted; nothing was submitted or created.
        case outOfMemory
        /// The scheduler is shut down, or is shutting down; nothing was submitted.
        case closed
        /// The capacity is reached, and the policy is to reject; nothing was submitted.
        case full
        /// The number of workers is not between 1 and 256.
        case invalidWorkers
        /// The capacity is less than 1.
        case invalidCapacity
        /// The number of spare workers is not between 0 and 65,536.
        case invalidSpareWorkers
        /// `CSCHED_WORKERS` in the environment is not a number between 1 and 256. No longer thrown: a
        /// message on standard error reports the value, and the number of CPUs is used. The case remains for
        /// source compatibility.
        case invalidEnvironment
        /// The system refused a worker thread.
        case threadCreationFailed
        /// The call would wait for the calling thread itself; nothing was done.
        case wouldDeadlock
    }

    /// The kind of error.
    public let code: Code

    package init(_ code: Code) { self.code = code }
}

extension SchedulerError: CustomStringConvertible {
    /// One sentence that describes the failure.
    public var description: String {
        switch code {
        case .outOfMemory: "Memory is exhausted."
        case .closed: "The scheduler is shut down."
        case .full: "The scheduler's capacity is reached."
        case .invalidWorkers: "The number of workers must be between 1 and 256."
        case .invalidCapacity: "The capacity must be at least 1."
        case .invalidSpareWorkers: "The number of spare workers must be between 0 and 65,536."
        case .invalidEnvironment: "CSCHED_WORKERS in the environment is not a number between 1 and 256."
        case .threadCreationFailed: "A worker thread could not be created."
        case .wouldDeadlock: "The call would wait for the calling thread itself."
        }
    }
}
