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

/// Somebody who is told the outcome.
struct RunObserver<Output: Sendable>: Sendable {
    let registration: Registration
    let delivery: Delivery
    let body: @Sendable (Outcome<Output>) -> Void
}
