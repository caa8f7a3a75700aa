// AdmissionGate.swift - lets so many bodies run at a time, and shares that among tenants.
//
// The state is a value under one lock (GateState.swift); a section is O(log n) of the tenants that wait, and calls nothing of a
// user's. Answers are told after it. `pump` gives free slots away (I1 there).

internal import CInspection
internal import CompositeOperationsBasics
internal import Glibc
@_spi(Faces) internal import Runs
public import Scheduling

/// Lets so many bodies run at a time on a scheduler, and shares that among tenants by their weights.
///
/// ```swift
/// let gate = AdmissionGate(width: 8)
/// let paying = gate.tenant("paying", weight: 7)
/// let free = gate.tenant("free", weight: 1, limit: 100, whenFull: .dropOldest)
/// let page = try await paying.run(startingBy: .now + .milliseconds(200)) { render(request) }
/// ```
///
/// A request that does not begin at once waits in its tenant's line, first in, first out; whenever a body ends, the turn is that of the
/// tenant that has had least for its weight (start-time fair queueing: Goyal, Vin and Cheng, 1996). A tenant that alone asks has
/// all of the gate. A tenant that was silent comes after at most one turn of each that waits.
///
/// All members may be used from any thread.
public final class AdmissionGate: Sendable {
    /// The price of a turn, for its tenant.
    public enum Charging: Hashable, Sendable {
        /// The cost that was said when it was asked for.
        case operations
        /// The time that it takes, by the clock: what is thought before is made good after. Costs that are said are not looked at.
        case time
    }

    /// Where the bodies run.
    public let scheduler: Scheduler
    private let state: Guarded<GateState>
    private let instance = Instance(.gates)

    /// Creates an open gate without tenants.
    ///
    /// - Parameters:
    ///   - scheduler: where the bodies run. Without a capacity: the gate is what limits.
    ///   - width: how many may run at a time; nil: as many as the scheduler has workers. An asynchronous body counts until it has
    ///     returned, also while it is suspended.
    ///   - charging: by what the shares are measured.
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

    /// Makes a tenant. It is forgotten, with its figures, when the last reference to it goes and nothing of it waits or runs.
    ///
    /// - Parameters:
    ///   - name: for figures, errors and dumps; it may be used again.
    ///   - weight: its share, against those of the others.
    ///   - limit: how many may wait; nil: any number. With 0 what does not begin at once is refused.
    ///   - whenFull: what is done about one more.
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

    /// How many may run at a time. More begin at once when it grows; none is interrupted when it shrinks.
    public var width: Int {
        get { state.withLock { $0.width } }
        set {
            Self.demandWidth(newValue)
            pump { state, _ in state.width = newValue }
        }
    }

    /// How many run.
    public var running: Int { state.withLock { $0.running } }
    /// How many wait, of all tenants.
    public var waiting: Int { state.withLock { $0.waiting } }
    /// The counts of each tenant's requests and their ends, as of one moment. O(tenants), under the lock of the gate.
    public var figures: [TenantFigures] { state.withLock { $0.figures } }

    /// Refuses all that is asked for from now on.
    ///
    /// - Parameter refusesWaiting: whether what waits is refused, too; else it has its turn still.
    public func close(refusesWaiting: Bool = false) {
        state.withLock { $0.close() }
        guard refusesWaiting else { return }
        while let request = state.withLock({ $0.takeAny() }) {
            request.refuse(Refusal(.closed, tenant: request.name))
        }
        pump { _, _ in }  // it may be idle now
    }

    /// Suspends the task until nothing waits and nothing runs. Others may ask meanwhile, unless the gate is closed.
    public nonisolated(nonsending) func idle() async {
        await Waiter.wait { waiter in
            state.withLock { state in state.isIdle ? .isOver : state.idlers.append(waiter) }
        }
    }

    // MARK: For tenants

    /// On the clock of deadlines: the monotonic one.
    static func now_ns() -> UInt64 {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        return UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
    }

    /// A deadline on that clock. Time in which the machine is suspended does not count.
    static func monotonic_ns(_ deadline: ContinuousClock.Instant?) -> UInt64? {
        guard let deadline else { return nil }
        let left = min(ContinuousClock.now.duration(to: deadline), .longest)
        return left <= .zero ? 0 : now_ns() + UInt64(left / .nanoseconds(1))
    }

    func section<Answer>(_ body: (inout GateState) -> Answer) -> Answer { state.withLock(body) }

    /// Asks, and tells those who were dropped for it.
    func ask(_ request: Request, canWait: Bool) -> GateState.Verdict {
        let verdict = state.withLock { $0.ask(request, now_ns: request.asked_ns, canWait: canWait) }
        settle(verdict, of: request)
        return verdict
    }

    /// Does what follows from an answer, outside of the section that gave it.
    func settle(_ verdict: GateState.Verdict, of request: Request) {
        guard case .waits(let dropped) = verdict else { return }
        if let dropped { dropped.refuse(Refusal(.dropped, tenant: dropped.name)) }
        setTimer(request)
    }

    /// A body has ended.
    func end(_ request: Request) {
        pump { state, now_ns in state.end(request, now_ns: now_ns) }
    }

    /// A request that was to begin does not.
    ///
    /// - Parameter reason: nil: its task is cancelled.
    func undo(_ request: Request, _ reason: Refusal.Reason?) {
        pump { state, _ in state.undo(request, reason) }
    }

    /// A request that was to begin will not: its scheduler is shut down.
    func giveUp(_ request: Request) {
        undo(request, .closed)
        request.refuse(Refusal(.closed, tenant: request.name))
    }

    /// Takes a request out of its line.
    ///
    /// - Parameter reason: nil: its task is cancelled, and is to be woken by the caller.
    /// - Returns: whether it was there.
    func withdraw(_ request: Request, _ reason: Refusal.Reason?) -> Bool {
        var wasThere = false
        pump { state, _ in wasThere = state.withdraw(request, reason) }
        if wasThere, let reason { request.refuse(Refusal(reason, tenant: request.name)) }
        return wasThere
    }

    // MARK: Turns

    /// Changes the state, and lets begin what can. Not recursive: the slot of what a scheduler that is shut down refuses is
    /// the next one's.
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

    /// So that one that waits in vain hears of that when its deadline is over, and not when its turn has come.
    private func setTimer(_ request: Request) {
        guard let deadline_ns = request.deadline_ns else { return }
        let now_ns = Self.now_ns()
        let delay = Duration.nanoseconds(Int64(min(deadline_ns - min(now_ns, deadline_ns), 1 << 62)))
        let timer = try? scheduler.call(after: delay, job: request, expireRequest)
        // Without one, it hears of that when its turn comes.
        guard let timer else { return }
        let isSet = state.withLock { _ in
            guard request.state == .waiting else { return false }
            request.timer = timer
            return true
        }
        if !isSet { timer.cancel() }
    }
}
