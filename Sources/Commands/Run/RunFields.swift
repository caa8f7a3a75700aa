// RunFields.swift - the state of a run, under its lock.
//
// Invariants:
//   I1  the outcome is written once, in the critical section that takes `waiters`, `dependents`, `observers` and `held`,
//       which are empty from then on. So each entry is notified once. Registering checks for the outcome in its own
//       critical section, so no registration misses the end. The only exception is while `isTelling`, which begins in
//       that section: observers may still register. The thread that set `isTelling` takes them until none are left, and
//       clears `isTelling` in the section that finds none. Hence notices are enqueued in registration order.
//   I2  `machine` decides which caller claims the run, and which end is the outcome; see RunMachine.
//   I3  `lane` is set from acceptance to the outcome.
//   I4  `delegate` is set until it is notified or detached: the thread that takes it out does one or the other.

internal import CompositeOperationsBasics
@_spi(Faces) internal import Runs

/// The state of a run, except for its value. Noncopyable, since it contains a dozen references.
struct RunFields: ~Copyable {
    var machine = RunMachine()
    /// How the run ended, if without a value.
    var badEnd: Outcome<Never>?
    /// The failure of the run, if no observer was notified and no caller got the error.
    var unseen: UnseenFailure?
    /// Whether code inside the run observed a failure and rethrew it.
    var isFailureHeard = false
    /// Whether one of `dependents` ends the span of the run.
    var hasSpan = false
    var delegate: DelegateReference?
    /// Set in the run of a group: cancels the members.
    var cancelMembers: (@Sendable () -> [Deliveries])?
    var waiters = WaitList()
    /// Short functions of this module, called when the run ends. Each returns deliveries whose inline notices are then
    /// delivered.
    var dependents: [@Sendable (Outcome<Never>?) -> [Deliveries]] = []
    var observers = Registrations<RunObserver>()
    /// Whether observers are being notified: an observer that registers now is notified after them.
    var isTelling = false
    /// Whether only the delegate is being notified, inline: observers at other places need not wait for it.
    var isTellingInPlace = false
    /// The queues of the first notices, reused so that later observers do not overtake earlier ones; nil if there are
    /// none yet.
    var deliveries: Deliveries?
    /// The body for the lane to run.
    var held: AnyBody?
    var lane: Lane?
    /// Set while the run executes in a task.
    var task: (any RunTask)?

    /// Whether the end has no waiters, no observers and no dependents.
    var isQuiet: Bool {
        delegate == nil && observers.isEmpty && waiters.isEmpty && dependents.isEmpty && cancelMembers == nil
    }

    /// Whether no code is notified of a failure: there is no waiter, no observer and no dependent.
    var isUnheard: Bool {
        delegate == nil && observers.isEmpty && waiters.isEmpty && dependents.count == (hasSpan ? 1 : 0)
            && !isFailureHeard && held?.tellsFailures != true
    }

    /// Whether there is a delegate or an observer to notify.
    var isListened: Bool { delegate != nil || !observers.isEmpty }

    /// Whether an observer that registers now must follow earlier ones, which are being notified.
    func isBehind(_ delivery: Delivery) -> Bool {
        isTelling && (!isTellingInPlace || delivery.place == .inline)
    }

    /// Whether the end does nothing but notify the delegate, inline.
    var isDelegateAlone: Bool {
        guard let delegate, lane == nil, observers.isEmpty, dependents.isEmpty else { return false }
        return delegate.delivery.place == .inline
    }
}

/// An observer of the outcome.
struct RunObserver: Sendable {
    let registration: Registration
    let delivery: Delivery
    /// Called with the run, which has ended.
    let body: @Sendable (CommandRun) -> Void
}

/// A task that executes a run.
protocol RunTask: Sendable { func cancel() }
extension Task: RunTask {}
