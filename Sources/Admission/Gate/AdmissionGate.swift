// AdmissionGate.swift - limits how many bodies run at a time, and shares that limit among tenants.
//
// The state is a value under one lock (GateState.swift). A critical section is O(log n) in the waiting tenants, and calls no user
// code. Answers are delivered after it. `pump` assigns free slots (I1 there).

internal import CInspection
internal import CompositeOperationsBasics
internal import Glibc
@_spi(Faces) internal import Runs
public import Scheduling

/// Limits how many bodies run at a time on a scheduler, and shares that limit among tenants by weight.
///
/// ```swift
/// let gate = AdmissionGate(width: 8)
/// let paying = gate.tenant("paying", weight: 7)
/// let free = gate.tenant("free", weight: 1, limit: 100, whenFull: .dropOldest)
/// let page = try await paying.run(startingBy: .now + .milliseconds(200)) { render(request) }
/// ```
///
/// A request that does not begin at once waits in its tenant's line, first in, first out. Whenever a body ends, the next turn goes
/// to the tenant that has received the least in proportion to its weight (start-time fair queueing: Goyal, Vin and Cheng, 1996). A
/// tenant that is alone gets all slots. A tenant that was idle waits for at most one turn of each waiting tenant.
///
/// All members may be used from any thread.
public final class AdmissionGate: Sendable {
    /// How a turn is charged to its tenant.
    public enum Charging: Hashable, Sendable {
        /// By the cost declared in the request.
        case operations
        /// By the elapsed time: the estimate made at the start is corrected at the end. Declared costs are ignored.
        case time
    }

    /// The scheduler that runs the bodies.
    public let scheduler: Scheduler
    private let state: Guarded<GateState>
    private let instance = Instance(.gates)

    /// Creates an open gate without tenants.
    ///
    /// - Parameters:
    ///   - scheduler: runs the bodies. It should have no capacity: the gate is the limit.
    ///   - width: how many bodies may run at a time; nil: as many as the scheduler has workers. An asynchronous body counts until
    ///     it has returned, even while it is suspended.
    ///   - charging: how the shares are measured.
    /// - Precondition: the width is at least 1.
    public init(on scheduler: Scheduler = .shared, width: Int? = nil, charging: Charging = .operations) {
        Self.demandWidth(width ?? 1)
        self.scheduler = scheduler
        state = Guarded(GateState(width: width ?? scheduler.workers, charging: charging))
        if inspection_is_on() { Inspectables.keep(self, .gates) }
    }

    private static func demandWidth(_ width: Int) {
        demand(width >= 1, "AdmissionGate: the width is \(width), and must be at least 1")
    }

    /// Creates a tenant. The tenant is forgotten, with its figures, once the last reference to it is released and none of its
    /// requests waits or runs.
    ///
    /// - Parameters:
    ///   - name: for figures, errors and dumps; need not be unique.
    ///   - weight: its share, relative to the other tenants.
    ///   - limit: how many requests may wait; nil: any number. With 0, a request that does not begin at once is refused.
    ///   - whenFull: how a request beyond the limit is handled.
    /// - Precondition: the weight is between 1 and 1,048,576; the limit is not negative.
    public func tenant(
        _ name: String, weight: Int = 1, limit: Int? = nil, whenFull: Tenant.WhenFull = .refuse
    ) -> Tenant {
        Tenant.demandWeight(weight)
        Tenant.demandLimit(limit)
        let number = state.withLock {
            $0.addTenant(name, weight: weight, limit: limit, whenFull: whenFull)
        }
        return Tenant(self, name, number)
    }

    /// How many bodies may run at a time. When the width grows, more bodies begin at once; when it shrinks, none is interrupted.
    public var width: Int {
        get { state.withLock { $0.width } }
        set {
            Self.demandWidth(newValue)
            pump { state, _ in state.width = newValue }
        }
    }

    /// How many bodies run.
    public var running: Int { state.withLock { $0.running } }
    /// How many requests wait, of all tenants.
    public var waiting: Int { state.withLock { $0.waiting } }
    /// The counts of each tenant's requests and of their outcomes, as of one moment. O(tenants), under the lock of the gate.
    public var figures: [TenantFigures] { state.withLock { $0.figures } }

    /// Refuses all requests made from now on.
    ///
    /// - Parameter refusesWaiting: whether waiting requests are refused, too; otherwise they still get their turns.
    public func close(refusesWaiting: Bool = false) {
        state.withLock { $0.close() }
        guard refusesWaiting else { return }
        while let request = state.withLock({ $0.takeAny() }) {
            request.refuse(Refusal(.closed, tenant: request.name))
        }
        pump { _, _ in }  // the gate may be idle now
    }

    /// Suspends the task until no request waits or runs. New requests may be made meanwhile, unless the gate is closed.
    public nonisolated(nonsending) func idle() async {
        await Waiter.wait { waiter in
            state.withLock { state in state.isIdle ? .isOver : state.idlers.append(waiter) }
        }
    }

    // MARK: For tenants

    /// The current time on the clock of deadlines, the monotonic one.
    static func now_ns() -> UInt64 {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        return UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
    }

    /// Converts a deadline to that clock. Time during which the machine is suspended does not count.
    static func monotonic_ns(_ deadline: ContinuousClock.Instant?) -> UInt64? {
        guard let deadline else { return nil }
        let left = min(ContinuousClock.now.duration(to: deadline), .longest)
        return left <= .zero ? 0 : now_ns() + UInt64(left / .nanoseconds(1))
    }

    func section<Answer>(_ body: (inout GateState) -> Answer) -> Answer { state.withLock(body) }

    /// Puts a request to the state, and refuses the request that was dropped for it, if any.
    func ask(_ request: Request, canWait: Bool) -> GateState.Verdict {
        let verdict = state.withLock { $0.ask(request, now_ns: request.asked_ns, canWait: canWait) }
        settle(verdict, of: request)
        return verdict
    }

    /// Acts on a verdict, outside of the critical section that returned it.
    func settle(_ verdict: GateState.Verdict, of request: Request) {
        guard case .waits(let dropped) = verdict else { return }
        if let dropped { dropped.refuse(Refusal(.dropped, tenant: dropped.name)) }
        setTimer(request)
    }

    /// Called when a body has ended.
    func end(_ request: Request) {
        pump { state, now_ns in state.end(request, now_ns: now_ns) }
    }

    /// Called when a request that was chosen to begin does not begin.
    ///
    /// - Parameter reason: nil: its task is cancelled.
    func undo(_ request: Request, _ reason: Refusal.Reason?) {
        pump { state, _ in state.undo(request, reason) }
    }

    /// Called when a request that was chosen to begin cannot, because its scheduler is shut down.
    func giveUp(_ request: Request) {
        undo(request, .closed)
        request.refuse(Refusal(.closed, tenant: request.name))
    }

    /// Takes a request out of its line.
    ///
    /// - Parameter reason: nil: its task is cancelled, and the caller must wake it.
    /// - Returns: whether the request was there.
    func withdraw(_ request: Request, _ reason: Refusal.Reason?) -> Bool {
        var wasThere = false
        pump { state, _ in wasThere = state.withdraw(request, reason) }
        if wasThere, let reason { request.refuse(Refusal(reason, tenant: request.name)) }
        return wasThere
    }

    // MARK: Turns

    /// Changes the state, and begins all requests that can begin. Not recursive: when a scheduler that is shut down refuses a
    /// request, the loop passes its slot to the next one.
    private func pump(_ change: (inout GateState, _ now_ns: UInt64) -> Void) {
        let now_ns = Self.now_ns()
        var step = state.withLock { state in
            change(&state, now_ns)
            return state.step(now_ns: now_ns)
        }
        while true {
            var isMore = step.isMore
            switch step.next {
            case .begins(let request):
                if !request.begin() {
                    state.withLock { $0.undo(request, .closed) }
                    request.refuse(Refusal(.closed, tenant: request.name))
                    isMore = true
                }
            case .refused(let request, let reason):
                request.refuse(Refusal(reason, tenant: request.name))
                isMore = true
            case nil: break
            }
            step.idlers.wake()
            guard isMore else { return }
            step = state.withLock { $0.step(now_ns: now_ns) }
        }
    }

    /// Sets a timer, so a request that waits in vain is refused when its deadline passes, rather than when its turn comes.
    private func setTimer(_ request: Request) {
        guard let deadline_ns = request.deadline_ns else { return }
        let now_ns = Self.now_ns()
        let delay = Duration.nanoseconds(Int64(min(deadline_ns - min(now_ns, deadline_ns), 1 << 62)))
        let timer = try? scheduler.call(after: delay, job: request, expireRequest)
        // Without a timer, the request is refused when its turn comes.
        guard let timer else { return }
        let isSet = state.withLock { _ in
            guard request.state == .waiting else { return false }
            request.timer = timer
            return true
        }
        if !isSet { timer.cancel() }
    }
}
