// RunFields.swift - what a run knows, under its lock.
//
// Invariants:
//   I1  the outcome is written once, in the section that takes `waiters`, `dependents`, `observers` and `held`, which are
//       empty from then on. So each of them is told once, and whoever looks after registering has missed nothing. Only
//       while `isTelling`, which begins there, observers come still: who made it true takes them, until there are none,
//       and makes it false in that section. So nobody's notice enters its queue before that of one who came earlier.
//   I2  `machine` decides who claims the run, and which end is its outcome; see RunMachine.
//   I3  `lane` is set from acceptance to the outcome.
//   I4  `delegate` is there until it is told or detached: whoever takes it out, does the one or the other.

internal import CompositeOperationsBasics
@_spi(Faces) internal import Runs

/// The state of a run, but for the value that it gave. Not to be copied: it is a dozen references.
struct RunFields: ~Copyable {
    var machine = RunMachine()
    /// How it ended without a value.
    var badEnd: Outcome<Never>?
    /// That it failed, if nobody was told, and no caller got the error.
    var unseen: UnseenFailure?
    /// Code inside of it was told of a failure that it passed on.
    var isFailureHeard = false
    /// One of `dependents` is the end of its span.
    var hasSpan = false
    var delegate: DelegateReference?
    /// Of a group: cancels what is in it.
    var cancelMembers: (@Sendable () -> [Deliveries])?
    var waiters = WaitList()
    /// Code of this module's, which is short, and gives the notices that are to be delivered after it.
    var dependents: [@Sendable (Outcome<Never>?) -> [Deliveries]] = []
    var observers = Registrations<RunObserver>()
    /// The first observers are being told: one that comes now is told after them.
    var isTelling = false
    /// So is the delegate, alone and in place: observers elsewhere do not wait for that.
    var isTellingInPlace = false
    /// Where those who were told first were, so that who comes later does not overtake them; nil: nowhere yet.
    var deliveries: Deliveries?
    /// The body that the lane will run.
    var held: AnyBody?
    var lane: Lane?
    /// While it executes in one.
    var task: (any RunTask)?

    /// Whether nobody waits for the end, is to be told of it, or knows what follows from it.
    var isQuiet: Bool {
        delegate == nil && observers.isEmpty && waiters.isEmpty && dependents.isEmpty && cancelMembers == nil
    }

    /// Whether a failure goes no further: nobody waits for it, is told of it, or follows from it.
    var isUnheard: Bool {
        delegate == nil && observers.isEmpty && waiters.isEmpty && dependents.count == (hasSpan ? 1 : 0)
            && !isFailureHeard && held?.tellsFailures != true
    }

    /// Whether anybody is to be told.
    var isListened: Bool { delegate != nil || !observers.isEmpty }

    /// Whether an observer that comes now is told after the ones that came before, which are being told.
    func isBehind(_ delivery: Delivery) -> Bool {
        isTelling && (!isTellingInPlace || delivery.place == .inline)
    }

    /// Whether the delegate is all that is told, and nothing else follows from the end.
    var isDelegateAlone: Bool {
        guard let delegate, lane == nil, observers.isEmpty, dependents.isEmpty else { return false }
        return delegate.delivery.place == .inline
    }
}

/// Somebody who is told the outcome.
struct RunObserver: Sendable {
    let registration: Registration
    let delivery: Delivery
    /// Given the run, which has ended.
    let body: @Sendable (CommandRun) -> Void
}

/// A task that executes a run.
protocol RunTask: Sendable { func cancel() }
extension Task: RunTask {}
