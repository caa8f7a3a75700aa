// Deliveries.swift - notifies the observers of an end one at a time and in order.
//
// Invariant I1: a lane has one line (a queue of notices) for each place; while `lines` has an entry for a place, a thread
// is delivering that line, or will.

@_spi(Faces) internal import CompositeOperationsBasics
@_spi(Faces) internal import Runs

extension [Deliveries] {
    /// Delivers the inline notices on the calling thread.
    func deliverInline() { for each in self { each.deliverInline() } }
}

/// The notices of one lane, or of one run outside any lane, by place.
final class Deliveries: Sendable {
    typealias Notice = @Sendable () -> Void

    private struct Line {
        let destination: (any ExecutionTarget)?
        var notices = Notices<Notice>()
    }

    private let lines = Guarded<[Delivery.Place: Line]>([:])
    private let instance = Instance(.deliveries)

    /// Enqueues a notice. A notice for another place is already dispatched when the call returns.
    ///
    /// - Returns: whether the caller must call ``deliverInline()``, under no lock, after everything else that it has to do.
    func add(_ notice: @escaping Notice, to delivery: Delivery) -> Bool {
        let destination = delivery.destination
        let isMine = lines.withLock { lines in
            lines[delivery.place, default: Line(destination: destination)].notices.append(notice)
            return lines[delivery.place]!.notices.claim()
        }
        guard isMine else { return false }
        guard let destination else { return true }
        send(delivery.place, to: destination)
        return false
    }

    private func send(_ place: Delivery.Place, to destination: any ExecutionTarget) {
        ExecutionWork.run(on: destination) {
            // Notices that arrive in the meantime wait for another job, so that the target's other work gets its turn.
            for notice in self.take(place) { notice() }
            if !self.isOver(place) { self.send(place, to: destination) }
        }
    }

    func deliverInline() {
        repeat { for notice in take(.inline) { notice() } } while !isOver(.inline)
    }

    private func take(_ place: Delivery.Place) -> [Notice] {
        lines.withLock { $0[place]?.notices.takeAll() ?? [] }
    }

    /// Whether no notice is left; if so, removes the line (I1) and releases its objects outside the lock.
    private func isOver(_ place: Delivery.Place) -> Bool {
        let (isOver, gone) = lines.withLock { lines -> (Bool, Line?) in
            if lines[place]?.notices.isOver() == false { return (false, nil) }
            return (true, lines.removeValue(forKey: place))
        }
        withExtendedLifetime(gone) {}
        return isOver
    }
}
