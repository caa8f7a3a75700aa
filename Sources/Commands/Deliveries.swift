// Deliveries.swift - those who are told of an end are told one at a time and in order.
//
// Invariants:
//   I1  a lane has one queue of notices for each place; an entry in `queues` means that one job drains it, or will.
//   I2  notices of a place run one at a time, in the order in which their runs ended.

internal import CompositeOperationsBasics
@_spi(Faces) internal import Runs

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
        ExecutionWork.run(on: destination) {
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
