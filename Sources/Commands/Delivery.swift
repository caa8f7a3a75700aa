// Delivery.swift - where those who are told of an end are told, one at a time and in order.
//
// Invariants:
//   I1  a lane has one queue of notices for each place; an entry in `queues` means that one job drains it, or will.
//   I2  notices of a place run one at a time, in the order in which their runs ended.

public import CompositeOperations
internal import CompositeOperationsBasics

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
    fileprivate var destination: (any ExecutionTarget)? {
        switch self {
        case .inline: nil
        case .main: Self.mainTarget
        case .isolated(let actor): ExecutorTarget(actor)
        case .target(let target): target
        }
    }
}

/// Somebody who will be told; no longer once it is cancelled, or nobody refers to it.
public final class Subscription: Sendable {
    private let end: Guarded<(@Sendable () -> Void)?>
    private let instance = Instance(.subscriptions)

    /// Something that ends with a call of `end`.
    package init(_ end: (@Sendable () -> Void)? = nil) { self.end = Guarded(end) }

    /// Ends it. A call that has begun goes on.
    public func cancel() {
        let end = self.end.withLock { end in
            defer { end = nil }
            return end
        }
        end?()
    }

    deinit { cancel() }
}

extension [Deliveries] {
    /// Delivers what is to be delivered on the calling thread.
    func deliverInline() { for each in self { each.deliverInline() } }
}

/// The notices of one lane, by place.
final class Deliveries: Sendable {
    typealias Notice = @Sendable () -> Void

    private struct Queue {
        let destination: (any ExecutionTarget)?
        var notices: [Notice]
    }

    private let queues = Guarded<[Delivery.Place: Queue]>([:])
    private let instance = Instance(.deliveries)

    /// Enqueues a notice. What is to be delivered elsewhere is on its way when the call returns.
    ///
    /// - Returns: whether the caller has to call ``deliverInline()``, under no lock, and when it has nothing else to do.
    func add(_ notice: @escaping Notice, to delivery: Delivery) -> Bool {
        let destination = delivery.destination
        let isFirst = queues.withLock { queues in
            if queues[delivery.place] != nil {
                queues[delivery.place]!.notices.append(notice)
                return false
            }
            queues[delivery.place] = Queue(destination: destination, notices: [notice])
            return true
        }
        guard isFirst else { return false }
        guard let destination else { return true }
        send(delivery.place, to: destination)
        return false
    }

    private func send(_ place: Delivery.Place, to destination: any ExecutionTarget) {
        COQueues.run(on: destination) {
            // What comes meanwhile waits for another job: so the target's other work gets its turn.
            self.take(place)?.forEach { $0() }
            if self.hasMore(place) { self.send(place, to: destination) }
        }
    }

    func deliverInline() {
        while let notices = take(.inline) {
            for notice in notices { notice() }
            if !hasMore(.inline) { return }
        }
    }

    private func take(_ place: Delivery.Place) -> [Notice]? {
        queues.withLock { queues in
            let notices = queues[place]?.notices
            queues[place]?.notices = []
            return notices
        }
    }

    /// Whether somebody has to go on; else the queue goes (I1), and with it what it refers to.
    private func hasMore(_ place: Delivery.Place) -> Bool {
        let (hasMore, gone) = queues.withLock { queues -> (Bool, Queue?) in
            if queues[place]?.notices.isEmpty == false { return (true, nil) }
            return (false, queues.removeValue(forKey: place))
        }
        withExtendedLifetime(gone) {}
        return hasMore
    }
}
