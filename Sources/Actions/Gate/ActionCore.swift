// ActionCore.swift - the part that an action, its facades, its bindings and its triggers share, independent of their types:
// the gate, the mailboxes, and the observers. Triggers are handled in ActionCore+Triggers.swift.

internal import CInspection
@_spi(Faces) import CompositeOperationsBasics
@_spi(Faces) internal import Runs
import Synchronization

@usableFromInline final class ActionCore: @unchecked Sendable {
    // Unchecked, also for exclusivity: the variables are accessed only under the gate's lock, which is not recursive.

    /// A separate object, so that an execution that has ended retains only the name and not the core.
    @usableFromInline let name: ActionName
    var id: ActionID { name.id }
    let policy: ActionPolicy
    let gate: Gate
    let describe: @Sendable (any Error) -> String
    /// The action's index in the group's word; nil if the action is in no group.
    private(set) var index: Int?

    /// The inline mailbox. Also starts the work, which therefore begins after earlier notices, and never inside a
    /// notification.
    let inline: Mailbox
    /// The mailboxes for other places. Retained by their observers and while they deliver, so that a place is released with
    /// its last observer.
    @exclusivity(unchecked) private var others: [WeakMailbox] = []
    @exclusivity(unchecked) private var eventObservers = Registrations<Observer<ActionEvent<any Sendable>>>()
    @exclusivity(unchecked) private var snapshotObservers = Registrations<Observer<ActionSnapshot>>()
    @exclusivity(unchecked) private var failureObservers = Registrations<Observer<ActionFailure>>()
    @exclusivity(unchecked) private var rejectionObservers = Registrations<Observer<DisabledReason>>()
    /// The number of entries in the four lists. Changed under the gate's lock; a value read without the lock is a hint.
    private let watchers = Atomic(0)

    @exclusivity(unchecked) var line = FIFO<Trigger>()
    @exclusivity(unchecked) var running: [ExecutionID: Trigger] = [:]
    /// Whether an execution without a trigger is running, in addition to `running`; see ActionCore+Direct.
    @exclusivity(unchecked) var isInDirectly = false
    /// Whether the cancellation of that execution was requested.
    @exclusivity(unchecked) var isAskedToEnd = false

    /// Whether the precondition holds now.
    private let holds: @Sendable () -> Bool

    let flips: Flips
    private let instance = Instance(.cores)

    private struct WeakMailbox { weak var mailbox: Mailbox? }

    @usableFromInline
    init<Value>(
        _ name: String, when precondition: Precondition<Value>, policy: ActionPolicy, limit: Int,
        group: ActionGroup?, describe: @escaping @Sendable (any Error) -> String
    ) {
        let id = ActionID(name)
        Self.check(policy, limit, isGrouped: group != nil)
        let flips = Flips(of: id)
        self.name = ActionName(id)
        self.policy = policy
        self.describe = describe
        self.flips = flips
        holds = { precondition.read() != nil }
        gate = group?.gate ?? Gate(bits: GateWord(isEnabled: false, limit: limit).bits)
        inline = Mailbox(.inline, flips: flips)
        let place = gate.add(self, most: group == nil ? 1 : GroupWord.mostActions)
        if group != nil {
            demand(place != nil, "ActionGroup: a group has at most \(GroupWord.mostActions) actions")
            index = place
        }
        precondition.follow(self)
        follow()
        if inspection_is_on() { Inspectables.keep(self, .actions) }
    }

    private static func check(_ policy: ActionPolicy, _ limit: Int, isGrouped: Bool) {
        let bounds = 1...GateWord.mostOfAKind
        demand(
            bounds.contains(limit), "Action: the limit is \(limit), and must be 1 to \(GateWord.mostOfAKind)")
        switch policy {
        case .reject: break
        case .queue(let most):
            demand(
                bounds.contains(most),
                "Action: \(most) may wait, but the number must be 1 to \(GateWord.mostOfAKind)")
        case .switchToLatest, .coalesce:
            demand(limit == 1, "Action: with the policy \(policy) the limit must be 1, not \(limit)")
        }
        if isGrouped {
            demand(policy == .reject, "Action: in a group the policy must be reject, not \(policy)")
            demand(
                limit == 1,
                "Action: in a group each action runs once at a time: the limit must be 1, not \(limit)")
        }
    }

    deinit {
        // No more notices can be appended. Each mailbox is ordered, so the end is delivered last.
        snapshotObservers.forEach { observer in observer.mailbox.append { observer.end() } }
        eventObservers.forEach { observer in observer.mailbox.append { observer.end() } }
        inline.deliver()
        for other in others { other.mailbox?.deliver() }
    }

    // MARK: Snapshots

    var snapshot: ActionSnapshot { snapshot(gate.bits) }

    private func snapshot(_ bits: UInt64) -> ActionSnapshot {
        if let index { return GroupWord(bits: bits).snapshot(index) }
        return GateWord(bits: bits).snapshot(policy)
    }

    /// Under the gate's lock.
    func append(bits: UInt64) {
        guard !snapshotObservers.isEmpty else { return }
        let snapshot = snapshot(bits)
        snapshotObservers.forEach { observer in observer.mailbox.append { observer.tell(snapshot) } }
    }

    /// Whether there are no observers.
    var isUnwatched: Bool { watchers.load(ordering: .relaxed) == 0 }

    /// Whether any observer is notified of failures. Under the gate's lock.
    var tellsFailures: Bool { !eventObservers.isEmpty || !failureObservers.isEmpty }

    /// Under no lock.
    func deliver() {
        // The inline mailbox always exists, and is usually the only one.
        inline.deliver()
        let others = gate.withLock { _ in self.others.map(\.mailbox) }
        for other in others { other?.deliver() }
    }

    // MARK: Transitions of both kinds of gate

    func admit(_ bits: inout UInt64) -> Admission {
        if let index {
            var word = GroupWord(bits: bits)
            defer { bits = word.bits }
            return word.admit(index)
        }
        var word = GateWord(bits: bits)
        defer { bits = word.bits }
        return word.admit(policy)
    }

    /// - Returns: whether the slot passes to the first waiting trigger.
    func end(_ bits: inout UInt64) -> Bool {
        if let index {
            var word = GroupWord(bits: bits)
            word.end(index)
            bits = word.bits
            return false
        }
        return end(ofOnly: &bits)
    }

    /// As ``end(_:)``, for an action in no group.
    @inline(__always)
    func end(ofOnly bits: inout UInt64) -> Bool {
        var word = GateWord(bits: bits)
        defer { bits = word.bits }
        return word.end()
    }

    private func setEnabled(_ isEnabled: Bool, _ bits: inout UInt64) -> Bool {
        if let index {
            var word = GroupWord(bits: bits)
            defer { bits = word.bits }
            return word.setEnabled(isEnabled, index)
        }
        var word = GateWord(bits: bits)
        defer { bits = word.bits }
        return word.setEnabled(isEnabled)
    }

    /// Publishes the state of the precondition until the published state matches it. Every thread that publishes reads the
    /// precondition again afterwards; hence, of two concurrent threads, the later one detects a stale value.
    func follow() {
        var isEnabled = holds()
        while true {
            let hasChanged = gate.transition(of: self) {
                setEnabled(isEnabled, &$0)
            } then: {
                $0
            }
            if hasChanged { flips.add() }
            deliver()
            let again = holds()
            if again == isEnabled { return }
            isEnabled = again
        }
    }

    // MARK: Observers

    /// - Parameter existing: the members of `others` that are still alive. Under the gate's lock.
    private func mailbox(for delivery: Delivery, _ existing: [Mailbox]) -> Mailbox {
        if delivery.place == .inline { return inline }
        if let mailbox = existing.first(where: { $0.delivery.place == delivery.place }) { return mailbox }
        let mailbox = Mailbox(delivery, flips: flips)
        others = (existing + [mailbox]).map { WeakMailbox(mailbox: $0) }
        return mailbox
    }

    /// Adds an observer to one of the lists.
    ///
    /// - Parameter first: returns the value to deliver to the observer first, if any. Called under the gate's lock.
    private func observe<Value: Sendable>(
        _ list: ReferenceWritableKeyPath<ActionCore, Registrations<Observer<Value>>>, on delivery: Delivery,
        onEnd: @escaping @Sendable () -> Void = {}, first: (UInt64) -> Value? = { _ in nil },
        _ body: @escaping @Sendable (Value) -> Void
    ) -> Subscription {
        let (observer, existing) = gate.withLock { bits in
            let existing = others.compactMap(\.mailbox)
            let observer = Observer(mailbox(for: delivery, existing), onEnd: onEnd, body)
            self[keyPath: list].append(observer, observer.registration)
            watchers.add(1, ordering: .relaxed)
            if let value = first(bits) { observer.mailbox.append { observer.tell(value) } }
            return (observer, existing)
        }
        withExtendedLifetime(existing) {}  // each may be the last reference: released under no lock
        observer.mailbox.deliver()
        nonisolated(unsafe) let list = list  // a key path without captures
        return Subscription { [weak self] in
            observer.cancel()
            guard let self else { return }
            let removed = gate.withLock { _ in
                let removed = self[keyPath: list].remove(observer.registration)
                if removed != nil { watchers.subtract(1, ordering: .relaxed) }
                return removed
            }
            withExtendedLifetime(removed) {}  // released under no lock
        }
    }

    func observeSnapshots(on delivery: Delivery, _ body: @escaping @Sendable (ActionSnapshot) -> Void)
        -> Subscription
    {
        observe(\.snapshotObservers, on: delivery, first: { snapshot($0) }, body)
    }

    func observeFailures(on delivery: Delivery, _ body: @escaping @Sendable (ActionFailure) -> Void)
        -> Subscription
    {
        observe(\.failureObservers, on: delivery, body)
    }

    func observeRejections(on delivery: Delivery, _ body: @escaping @Sendable (DisabledReason) -> Void)
        -> Subscription
    {
        observe(\.rejectionObservers, on: delivery, body)
    }

    func observeEvents<Output>(
        on delivery: Delivery, onEnd: @escaping @Sendable () -> Void = {},
        _ body: @escaping @Sendable (ActionEvent<Output>) -> Void
    ) -> Subscription {
        observe(\.eventObservers, on: delivery, onEnd: onEnd) { body($0.typed()) }
    }

    /// Under the gate's lock.
    func append(_ event: ActionEvent<any Sendable>) {
        eventObservers.forEach { observer in observer.mailbox.append { observer.tell(event) } }
    }

    /// Under the gate's lock.
    func appendFailure(_ execution: ExecutionID, _ error: any Error) {
        guard !failureObservers.isEmpty else { return }
        let describe = describe
        failureObservers.forEach { observer in
            observer.mailbox.append {
                observer.tell(ActionFailure(execution: execution, message: describe(error), error: error))
            }
        }
    }

    /// Under the gate's lock.
    func appendRejection(_ reason: DisabledReason) {
        rejectionObservers.forEach { observer in observer.mailbox.append { observer.tell(reason) } }
    }
}
