// RunFields.swift - what a run knows, under the lock of its handle.
//
// Invariants:
//   I1  `outcome` is written once, in the section that takes `waiters`, `dependents`, `observers`, `delegate` and `held`, which are
//       empty from then on. So each of them is told once, and whoever looks after registering has missed nothing. Only
//       while `isTelling`, which begins there, observers come still: who made it true takes them, until there are none,
//       and makes it false in that section. So nobody's notice enters its queue before that of one who came earlier.
//   I2  `machine` decides who claims the run, and which end is its outcome; see RunMachine.
//   I3  `lane` is set from acceptance to the outcome.

internal import CompositeOperationsBasics
@_spi(Faces) internal import Runs
internal import Synchronization

/// What a run knows.
struct RunFields<Output: Sendable> {
    var machine = RunMachine()
    var outcome: Outcome<Output>?
    var delegate: DelegateReference?
    /// The delegate of a run that has ended, until it has been told; its notice is on its way.
    var notified: Guarded<DelegateReference?>?
    /// Of a group: cancels what is in it.
    var cancelMembers: (@Sendable () -> [Deliveries])?
    var waiters = WaitList()
    /// Code of this module's, which is short, and gives the notices that are to be delivered after it.
    var dependents: [@Sendable (Outcome<Never>?) -> [Deliveries]] = []
    var observers = Registrations<RunObserver<Output>>()
    /// Those who were told first are being told: who comes now is told after them.
    var isTelling = false
    /// Where those who were told first were, so that who comes later does not overtake them.
    var deliveries: Deliveries?
    /// What the lane will run.
    var held: TransactionBody<Output>?
    var lane: Lane?
    /// While it executes in one.
    var task: Execution?

    typealias Execution = Task<Outcome<Output>, Never>
}

/// An observer's place; until the end.
final class Ticket: @unchecked Sendable {
    // Unchecked: `place` is used under the lock of the run alone.
    private let isOver = Atomic(false)
    /// Where it is registered; nil: nowhere.
    fileprivate var place: Int?
    var isOpen: Bool { !isOver.load(ordering: .acquiring) }
    func end() { isOver.store(true, ordering: .releasing) }
}

/// Those who listen, in the order of their coming. To come and to leave is O(1), amortised.
struct Registrations<Element> {
    private var entries: [(ticket: Ticket?, element: Element)?] = []
    private var count = 0

    var isEmpty: Bool { count == 0 }
    var all: [Element] { entries.compactMap { $0?.element } }

    /// - Parameter ticket: for `remove`; nil: it stays until the end.
    mutating func append(_ element: Element, _ ticket: Ticket? = nil) {
        ticket?.place = entries.count
        entries.append((ticket, element))
        count += 1
    }

    /// - Returns: nil when it is not here.
    mutating func remove(_ ticket: Ticket) -> Element? {
        guard let place = ticket.place, place < entries.count, let entry = entries[place],
            entry.ticket === ticket
        else { return nil }
        ticket.place = nil
        entries[place] = nil
        count -= 1
        if entries.count > 2 * count + 8 { close() }
        return entry.element
    }

    /// Closes the gaps.
    private mutating func close() {
        entries.removeAll { $0 == nil }
        for (place, entry) in entries.enumerated() { entry?.ticket?.place = place }
    }
}

/// Somebody who is told the outcome.
struct RunObserver<Output: Sendable>: Sendable {
    let ticket: Ticket
    let delivery: Delivery
    let body: @Sendable (Outcome<Output>) -> Void
}
