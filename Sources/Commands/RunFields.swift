// RunFields.swift - what a run knows, under the lock of its handle.
//
// Invariants:
//   I1  `outcome` is written once, in the section that takes `waiters`, `observers`, `delegate` and `held`, which are
//       empty from then on. So each of them is told once, and whoever looks after registering has missed nothing.
//   I2  a run is claimed by the section that takes `state` from ready or accepted to executing (or, where it ends unstarted,
//       to failed): one caller does that. From undone to executing the outcome is there, and stays.
//   I3  `lane` is set from acceptance to the outcome; `holdsSlot` tells whether the lane's turn claimed the run.

internal import CompositeOperations
internal import Scheduling
internal import Synchronization

/// What a run knows.
struct RunFields<Output: Sendable> {
    var state = CommandState.ready
    var outcome: CommandOutcome<Output>?
    var delegate: DelegateReference?
    var waiters: [RunWaiter] = []
    var observers: [RunObserver<Output>] = []
    /// What the lane will run.
    var held: TransactionBody<Output>?
    var lane: Lane?
    var holdsSlot = false
    /// While it executes in one.
    var task: Execution?

    typealias Execution = Task<CommandOutcome<Output>, Never>

    mutating func removeWaiter(_ ticket: Ticket) -> RunWaiter? {
        waiters.firstIndex { $0.ticket === ticket }.map { waiters.remove(at: $0) }
    }

    mutating func removeObserver(_ ticket: Ticket) -> RunObserver<Output>? {
        observers.firstIndex { $0.ticket === ticket }.map { observers.remove(at: $0) }
    }
}

/// Who waits, or listens; until the end.
final class Ticket: Sendable {
    private let isOver = Atomic(false)
    var isOpen: Bool { !isOver.load(ordering: .acquiring) }
    func end() { isOver.store(true, ordering: .releasing) }
}

/// Somebody who is woken when the outcome is there, however busy those are who are told of it.
enum RunWaiter {
    case task(CheckedContinuation<Void, Never>)
    case cancellableTask(Ticket, CheckedContinuation<Void, any Error>)
    case thread(Ticket, CompletionCounter)
    /// Code of this module's, which is short, and gives the notices that are to be delivered after it.
    case call(@Sendable (CommandFailure?) -> [Deliveries])

    var ticket: Ticket? {
        switch self {
        case .task, .call: nil
        case .cancellableTask(let ticket, _), .thread(let ticket, _): ticket
        }
    }

    /// - Returns: whose inline notices the caller has to deliver.
    func wake(_ failure: CommandFailure?) -> [Deliveries] {
        switch self {
        case .task(let continuation): continuation.resume()
        case .cancellableTask(_, let continuation): continuation.resume()
        case .thread(_, let counter): counter.leave()
        case .call(let body): return body(failure)
        }
        return []
    }
}

/// Somebody who is told the outcome.
struct RunObserver<Output: Sendable>: Sendable {
    let ticket: Ticket
    let delivery: Delivery
    let body: @Sendable (CommandOutcome<Output>) -> Void
}
