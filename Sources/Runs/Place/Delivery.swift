// Delivery.swift - where notices are delivered.

/// Where a notice is delivered.
public enum Delivery: Sendable {
    /// On the thread that ended the run, after the invoker's slot has been released; or, if another thread is still
    /// delivering earlier notices of the same invoker, on that thread. Code that blocks there blocks a worker of the
    /// scheduler until another worker has taken its place.
    case inline
    /// On the main actor, which must be running.
    case main
    /// Isolated to an actor.
    case isolated(any Actor)
    /// On a target: a scheduler, a lane, a dispatch queue.
    case target(any ExecutionTarget)

    /// Equal for notices with the same place.
    package var place: Place {
        switch self {
        case .inline: .inline
        case .main: .main
        case .isolated(let actor): actor === MainActor.shared ? .main : .object(ObjectIdentifier(actor))
        case .target(let target): .object(ObjectIdentifier(target))
        }
    }

    /// A place of delivery. Observers with equal places are notified in one order.
    package enum Place: Hashable, Sendable {
        /// On the notifying thread.
        case inline
        /// On the main actor, however it was specified.
        case main
        /// On an actor or a target.
        case object(ObjectIdentifier)
    }

    private static let mainTarget = ExecutorTarget(MainActor.shared)

    /// nil for inline delivery.
    package var destination: (any ExecutionTarget)? {
        switch self {
        case .inline: nil
        case .main: Self.mainTarget
        case .isolated(let actor): ExecutorTarget(actor)
        case .target(let target): target
        }
    }
}
