// Delivery.swift - where somebody is told.

/// Where a notice is delivered.
public enum Delivery: Sendable {
    /// On the thread that ended the run, after the invoker's slot has been released; or, where it is still busy with an
    /// earlier notice of the same invoker, on the thread that is. Code that blocks there blocks a worker of the
    /// scheduler, until another one has taken its place.
    case inline
    /// On the main actor, which has to be running.
    case main
    /// Isolated to an actor.
    case isolated(any Actor)
    /// On a target: a scheduler, a lane, a dispatch queue.
    case target(any ExecutionTarget)

    /// Notices of the same place have equal ones.
    package var place: Place {
        switch self {
        case .inline: .inline
        case .main: .main
        case .isolated(let actor): actor === MainActor.shared ? .main : .object(ObjectIdentifier(actor))
        case .target(let target): .object(ObjectIdentifier(target))
        }
    }

    /// Where those are told, in one order, whose deliveries are equal in this.
    package enum Place: Hashable, Sendable {
        /// On the thread that tells.
        case inline
        /// On the main actor, however it is named.
        case main
        /// With an actor or a target.
        case object(ObjectIdentifier)
    }

    private static let mainTarget = ExecutorTarget(MainActor.shared)

    /// nil: inline.
    package var destination: (any ExecutionTarget)? {
        switch self {
        case .inline: nil
        case .main: Self.mainTarget
        case .isolated(let actor): ExecutorTarget(actor)
        case .target(let target): target
        }
    }
}
