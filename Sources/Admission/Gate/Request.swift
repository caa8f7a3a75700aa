// Request.swift - one thing that a tenant has asked for, from the question to the end.
//
// Invariants:
//   I1  `state` changes under the gate's lock alone. The thread that took the request out of `waiting`, and no other, tells it the
//       answer, under no lock; so there is one answer.
//   I2  what refers to a user's code, or to the tenant, goes when the answer is told or the body has returned, under no lock: a
//       request that is left in a line, which lets go of it under the gate's lock, has none of it.
//   I3  a scheduler that is shut down tells each request that it gives up, so its slot comes back.

internal import CompositeOperationsBasics
internal import Scheduling

final class Request: @unchecked Sendable {
    // Unchecked: I1. The other variables are used by the one thread, or task, that asks, then by the one that answers, and is
    // handed over by the gate's lock or the scheduler.

    enum State { case new, waiting, begun, over }

    /// How the answer is told.
    enum Means {
        case task(Waiter)
        case call(body: @Sendable () -> Void, orElse: (@Sendable (Refusal) -> Void)?)
    }

    let gate: AdmissionGate
    /// The tenant's, in the gate.
    let number: Int
    /// Keeps the number.
    private var tenant: Tenant?
    let name: String
    let cost: Int
    let asked_ns: UInt64
    /// Nil: none.
    let deadline_ns: UInt64?
    /// Whether a task waits for the answer, and does nothing else meanwhile.
    let isAwaited: Bool
    /// That of the code that asks.
    private let priority: Scheduler.Priority
    var began_ns: UInt64 = 0
    /// Its expected cost.
    var charged = 0
    var state = State.new
    var timer: ScheduledOperation?
    private let instance = Instance(.requests)
    private var means: Means?
    /// Why the task that asked goes on without a turn.
    private(set) var refusal: Refusal?
    /// Whether the body of the task that asked was called.
    var isCalled = false

    /// - Parameter deadline_ns: nil: none.
    init(
        _ tenant: Tenant, cost: Int, asked_ns: UInt64 = AdmissionGate.now_ns(), deadline_ns: UInt64?,
        means: Means? = nil
    ) {
        gate = tenant.gate
        number = tenant.number
        name = tenant.name
        self.tenant = tenant
        self.cost = cost
        self.asked_ns = asked_ns
        self.deadline_ns = deadline_ns
        self.means = means
        isAwaited = means == nil
        priority = means == nil ? .default : Scheduler.callersPriority  // a task keeps its own
    }

    /// The task that waits, before it is in a line.
    func willWake(_ waiter: Waiter) { means = .task(waiter) }

    /// Its turn has come.
    ///
    /// - Returns: whether it begins; it ends with ``AdmissionGate/end(_:)`` then.
    func begin() -> Bool {
        cancelTimer()
        switch means {
        case .task(let waiter):
            means = nil
            waiter.wake()
        case .call:
            // Otherwise it would have the priority of the body that has just ended.
            do { try gate.scheduler.submit(job: self, priority: priority, callRequest) } catch {
                return false
            }
        case nil: break
        }
        return true
    }

    /// On a worker.
    fileprivate func call(isGivenUp: Bool) {
        guard !isGivenUp else { return gate.giveUp(self) }  // I3
        if case .call(let body, _) = means {
            means = nil  // what the body refers to goes before the gate may be idle
            body()
        }
        gate.end(self)
    }

    /// Its turn will not come.
    func refuse(_ refusal: Refusal) {
        cancelTimer()
        self.refusal = refusal
        tenant = nil  // I2
        switch means {
        case .task(let waiter):
            means = nil
            waiter.wake()
        case .call(_, .some):
            // On a worker; a scheduler that is shut down calls it, too.
            do { try gate.scheduler.submit(job: self, priority: priority, tellRequest) } catch { tell() }
        case .call(_, nil), nil: means = nil
        }
    }

    fileprivate func tell() {
        guard case .call(_, let orElse?) = means, let refusal else { return }
        means = nil
        orElse(refusal)
    }

    /// The task that waited was cancelled, and is awake.
    func forget() {
        cancelTimer()
        means = nil
        tenant = nil  // I2
    }

    private func cancelTimer() {
        timer?.cancel()
        timer = nil
    }
}

private func callRequest(_ object: UnsafeMutableRawPointer, _ isGivenUp: Bool) {
    Unmanaged<Request>.fromOpaque(object).takeRetainedValue().call(isGivenUp: isGivenUp)
}

private func tellRequest(_ object: UnsafeMutableRawPointer, _ isGivenUp: Bool) {
    Unmanaged<Request>.fromOpaque(object).takeRetainedValue().tell()
}

/// On the thread of the timers: the deadline of a request is over, or its timer is cancelled.
func expireRequest(_ object: UnsafeMutableRawPointer, _ isGivenUp: Bool) {
    let request = Unmanaged<Request>.fromOpaque(object).takeRetainedValue()
    if !isGivenUp { _ = request.gate.withdraw(request, .expired) }
}
