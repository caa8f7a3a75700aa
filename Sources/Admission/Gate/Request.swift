// Request.swift - one request of a tenant, from its creation to its end.
//
// Invariants:
//   I1  `state` changes only under the gate's lock. Only the thread that takes the request out of `waiting` delivers the
//       answer, under no lock; so there is one answer.
//   I2  references to a user's code and to the tenant are released when the answer is delivered or the body has returned, under
//       no lock: a request that is left in a line, and released from it under the gate's lock, holds none.
//   I3  a scheduler that is shut down notifies each request that it drops, so the request's slot is returned.

internal import CompositeOperationsBasics
internal import Scheduling

final class Request: @unchecked Sendable {
    // Unchecked: I1. The other variables are used by the requesting thread or task, then by the answering one; the gate's lock
    // or the scheduler orders the two.

    enum State { case new, waiting, begun, over }

    /// How the answer is delivered.
    enum Means {
        case task(Waiter)
        case call(body: @Sendable () -> Void, orElse: (@Sendable (Refusal) -> Void)?)
    }

    let gate: AdmissionGate
    /// The tenant's number in the gate.
    let number: Int
    /// Keeps `number` from being reused.
    private var tenant: Tenant?
    let name: String
    let cost: Int
    let asked_ns: UInt64
    /// Nil: no deadline.
    let deadline_ns: UInt64?
    /// Whether a task waits for the answer, and does nothing else meanwhile.
    let isAwaited: Bool
    /// The priority of the requesting code.
    private let priority: Scheduler.Priority
    var began_ns: UInt64 = 0
    /// The cost charged when the request began.
    var charged = 0
    var state = State.new
    var timer: ScheduledOperation?
    private let instance = Instance(.requests)
    private var means: Means?
    /// Why the requesting task resumes without a turn.
    private(set) var refusal: Refusal?
    /// Whether the body of a task's request was called.
    var isCalled = false

    /// - Parameter deadline_ns: nil: no deadline.
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

    /// Sets the task to wake, before the request is in a line.
    func willWake(_ waiter: Waiter) { means = .task(waiter) }

    /// Called when the request's turn has come.
    ///
    /// - Returns: whether it begins; if so, it ends with ``AdmissionGate/end(_:)``.
    func begin() -> Bool {
        cancelTimer()
        switch means {
        case .task(let waiter):
            means = nil
            waiter.wake()
        case .call:
            // Explicit priority: by default, it would be that of the body that has just ended.
            do { try gate.scheduler.submit(job: self, priority: priority, callRequest) } catch {
                return false
            }
        case nil: break
        }
        return true
    }

    /// Called on a worker.
    fileprivate func call(isGivenUp: Bool) {
        guard !isGivenUp else { return gate.giveUp(self) }  // I3
        if case .call(let body, _) = means {
            means = nil  // the body's captures are released before the gate can become idle
            body()
        }
        gate.end(self)
    }

    /// Called when the request's turn will not come.
    func refuse(_ refusal: Refusal) {
        cancelTimer()
        self.refusal = refusal
        tenant = nil  // I2
        switch means {
        case .task(let waiter):
            means = nil
            waiter.wake()
        case .call(_, .some):
            // `orElse` runs on a worker; a scheduler that is shut down calls it, too.
            do { try gate.scheduler.submit(job: self, priority: priority, tellRequest) } catch { tell() }
        case .call(_, nil), nil: means = nil
        }
    }

    fileprivate func tell() {
        guard case .call(_, let orElse?) = means, let refusal else { return }
        means = nil
        orElse(refusal)
    }

    /// Releases references (I2): the caller has its answer, or was cancelled.
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

/// On the timer thread: the deadline of a request has passed, or its timer was cancelled.
func expireRequest(_ object: UnsafeMutableRawPointer, _ isGivenUp: Bool) {
    let request = Unmanaged<Request>.fromOpaque(object).takeRetainedValue()
    if !isGivenUp { _ = request.gate.withdraw(request, .expired) }
}
