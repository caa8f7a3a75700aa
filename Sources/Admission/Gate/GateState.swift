// GateState.swift - decides which requests begin, wait or are refused: a value, each of whose steps receives the time as an
// argument. The gate keeps it under a lock; simulations use it without one.
//
// Invariants:
//   I1  while any request waits, each slot is held, or a thread is about to call `next`: a thread that frees or adds a slot
//       calls `next` until nothing is left to do. Hence a request that finds a slot free while others wait joins the line.
//   I2  a tenant is in the order of turns exactly while one of its requests waits.
//   I3  each request counted as asked is counted once more, as started, refused or cancelled, unless it still waits.

@_spi(Faces) internal import CompositeOperationsBasics

struct GateState {
    /// The gate's state for one tenant.
    struct Share {
        var figures: TenantFigures
        var limit: Int?
        var whenFull: Tenant.WhenFull
        /// The requests in order of arrival, including some that no longer wait.
        var line = FIFO<Request>()
        /// The time between two starts while the tenant waits.
        var interval = Moments()
        /// When the tenant's last request started, or the tenant began to wait.
        var since_ns: UInt64 = 0
        /// The recent durations of its turns.
        var service = Moments()
        var isGone = false

        var isActive: Bool { figures.running > 0 || figures.waiting > 0 }
    }

    /// The answer to a request.
    enum Verdict {
        case begins
        /// The request has to be retried, by a caller that can wait.
        case wouldWait
        /// The request is in the line; the oldest request of the line may have been dropped for it.
        case waits(dropped: Request?)
        case refused(Refusal)
    }

    /// A request that was taken out of a line.
    enum Next {
        case begins(Request)
        case refused(Request, Refusal.Reason)
    }

    /// How many requests may run at a time.
    var width: Int
    private(set) var running = 0
    private(set) var waiting = 0
    private(set) var isClosed = false
    private let charging: AdmissionGate.Charging
    private var order: FairOrder
    private var shares: [Share] = []
    private var tenantCount = 0
    /// The sum of the weights of the active tenants: those with waiting or running requests.
    private var activeWeight = 0
    /// The recent durations of turns, of any tenant.
    private var service = Moments()
    /// Tasks that wait until no request runs or waits.
    var idlers = WaitList()

    init(width: Int, charging: AdmissionGate.Charging, order: FairOrder = FairOrder()) {
        self.width = width
        self.charging = charging
        self.order = order
    }

    var isIdle: Bool { running == 0 && waiting == 0 }

    // MARK: Tenants

    mutating func addTenant(
        _ name: String, weight: Int, limit: Int?, whenFull: Tenant.WhenFull
    ) -> Int {
        let number = order.add(weight: weight)
        tenantCount += 1
        let share = Share(
            figures: TenantFigures(name: name, weight: weight), limit: limit, whenFull: whenFull)
        if number == shares.count { shares.append(share) } else { shares[number] = share }
        return number
    }

    /// Removes a tenant that has no request left.
    mutating func removeTenant(_ number: Int) {
        order.remove(number)
        shares[number].line = FIFO()
        shares[number].isGone = true
        tenantCount -= 1
    }

    mutating func setWeight(_ weight: Int, of number: Int) {
        order.setWeight(weight, of: number)
        if shares[number].isActive { activeWeight += weight - shares[number].figures.weight }
        shares[number].figures.weight = weight
    }

    subscript(number: Int) -> Share {
        get { shares[number] }
        _modify { yield &shares[number] }
    }

    /// The figures of all tenants, in the order of their numbers.
    var figures: [TenantFigures] { shares.filter { !$0.isGone }.map(\.figures) }

    /// The figures of the first tenants, with their numbers, and how many tenants there are.
    func someFigures(_ most: Int) -> (some: [(number: Int, figures: TenantFigures)], count: Int) {
        let here = shares.indices.lazy.filter { !shares[$0].isGone }
        return (here.prefix(most).map { ($0, shares[$0].figures) }, tenantCount)
    }

    // MARK: Requests

    /// - Parameter canWait: whether the answer to the request can be delivered later.
    mutating func ask(_ request: Request, now_ns: UInt64, canWait: Bool) -> Verdict {
        let number = request.number
        if isClosed { return refuse(number, .closed) }
        if let deadline_ns = request.deadline_ns, deadline_ns <= now_ns { return refuse(number, .expired) }
        if running < width, waiting == 0 {  // I1
            shares[number].figures.asked += 1
            begin(request, now_ns: now_ns)
            return .begins
        }
        if let deadline_ns = request.deadline_ns {
            let wait_ns = expectedWait_ns(number, now_ns: now_ns)
            if wait_ns > Double(deadline_ns - now_ns) {
                return refuse(number, .late, expectedWait: .nanoseconds(Int64(min(wait_ns, 1e18))))
            }
        }
        var dropped: Request?
        if let limit = shares[number].limit, shares[number].figures.waiting >= limit {
            switch shares[number].whenFull {
            case .wait where request.isAwaited: break  // its task is what waits
            case .dropOldest where limit > 0:
                guard canWait else { return .wouldWait }
                dropped = takeFirst(of: number)
                if let dropped { refuse(dropped, .dropped) }
            case .refuse, .wait, .dropOldest: return refuse(number, .full)
            }
        }
        guard canWait else { return .wouldWait }
        shares[number].figures.asked += 1
        line(request, now_ns: now_ns)
        return .waits(dropped: dropped)
    }

    private mutating func refuse(
        _ number: Int, _ reason: Refusal.Reason, expectedWait: Duration? = nil
    ) -> Verdict {
        shares[number].figures.asked += 1
        shares[number].figures.count(reason)
        return .refused(
            Refusal(reason, tenant: shares[number].figures.name, expectedWait: expectedWait))
    }

    private mutating func line(_ request: Request, now_ns: UInt64) {
        let number = request.number
        request.state = .waiting
        shares[number].line.append(request)
        count(number) { $0.waiting += 1 }
        waiting += 1
        if shares[number].figures.waiting == 1 {
            order.wait(number)  // I2
            shares[number].since_ns = now_ns
            shares[number].interval = Moments()
        }
    }

    /// The time between two starts of a waiting tenant, estimated from its share among the active tenants, all of which may wait
    /// soon.
    private func interval(_ number: Int) -> Moments? {
        guard let turn = service.mean else { return nil }
        let turns = Double(activeWeight) / Double(shares[number].figures.weight)
        return Moments(
            mean: turns * turn / Double(width),
            deviation: turns.squareRoot() * service.deviation / Double(width))
    }

    /// How long one more request of a tenant would wait; 0: nothing is known.
    private func expectedWait_ns(_ number: Int, now_ns: UInt64) -> Double {
        guard let turn = service.mean, let byShare = interval(number) else { return 0 }
        let waiting = shares[number].figures.waiting
        if waiting == 0 {
            // Its turn comes once its lead over its share is used up, and after one turn of each waiting tenant.
            let turns = order.lead(of: number) * Double(activeWeight) + Double(order.waitingCount + 1)
            return (turns * turn + Self.errors(turns.squareRoot()) * service.deviation) / Double(width)
        }
        // The measurement may predate the time when other tenants began to wait.
        let mean = max(shares[number].interval.mean ?? 0, byShare.mean ?? 0)
        let deviation = max(shares[number].interval.deviation, byShare.deviation)
        let ahead = Double(waiting + 1)
        let overdue = max(0, Double(now_ns - min(now_ns, shares[number].since_ns)) - mean)
        // Errors of single intervals cancel out; the error of their mean, taken over about 15 of them, does not.
        return ahead * mean + Self.errors((ahead + ahead * ahead / 15).squareRoot()) * deviation + overdue
    }

    /// The margin, in mean deviations, for a sum with this combined deviation: three cover 99 of 100 cases of a normal
    /// distribution, and two more cover a distribution as skewed as times are (Cornish and Fisher, 1938: exponential ones).
    private static func errors(_ deviations: Double) -> Double { 3 * deviations + 2 }

    // MARK: Turns

    /// Actions to take after the critical section, in this order.
    struct Step {
        var next: Next?
        /// Whether further steps may follow.
        var isMore: Bool
        /// Tasks that waited for the gate to become idle.
        var idlers: WaitList.Woken
    }

    mutating func step(now_ns: UInt64) -> Step {
        let next = next(now_ns: now_ns)
        return Step(
            next: next, isMore: running < width && waiting > 0, idlers: idlers.take { [isIdle] _ in isIdle })
    }

    /// Takes out the request whose turn it is, to begin it, or to refuse it if its deadline has passed; nil: no slot is free, or
    /// no request waits.
    mutating func next(now_ns: UInt64) -> Next? {
        guard running < width, let number = order.next, let request = takeFirst(of: number) else {
            return nil
        }
        if let deadline_ns = request.deadline_ns, deadline_ns <= now_ns {
            refuse(request, .expired)
            return .refused(request, .expired)
        }
        shares[number].interval.add(Double(now_ns - min(now_ns, shares[number].since_ns)))
        shares[number].since_ns = now_ns
        begin(request, now_ns: now_ns)
        return .begins(request)
    }

    private mutating func begin(_ request: Request, now_ns: UInt64) {
        let number = request.number
        request.state = .begun
        request.began_ns = now_ns
        request.charged = cost(request)
        order.take(number, cost: request.charged)
        running += 1
        count(number) { $0.started += 1 }
        let waited = Duration.nanoseconds(Int64(now_ns - min(now_ns, request.asked_ns)))
        shares[number].figures.waited += waited
        shares[number].figures.longestWait = max(shares[number].figures.longestWait, waited)
    }

    private func cost(_ request: Request) -> Int {
        switch charging {
        case .operations: return request.cost
        case .time:
            let service_ns = shares[request.number].service.mean ?? service.mean ?? 1_000
            return Int(min(max(1, service_ns / 1_000), Double(FairOrder.most)))
        }
    }

    /// Called when a request that has begun ends.
    mutating func end(_ request: Request, now_ns: UInt64) {
        let number = request.number
        let took_ns = now_ns - min(now_ns, request.began_ns)
        request.state = .over
        running -= 1
        service.add(Double(took_ns))
        shares[number].service.add(Double(took_ns))
        count(number) { $0.ended += 1 }
        shares[number].figures.ran += .nanoseconds(Int64(took_ns))
        if charging == .time {
            order.correct(number, by: Int(min(took_ns / 1_000, 1 << 40)) - request.charged)
        }
    }

    /// Undoes the start of a request that was chosen to begin: its scheduler refused it, or its task was cancelled.
    ///
    /// - Parameter reason: nil: its task was cancelled.
    mutating func undo(_ request: Request, _ reason: Refusal.Reason?) {
        let number = request.number
        request.state = .over
        running -= 1
        count(number) { $0.started -= 1 }
        if let reason { shares[number].figures.count(reason) } else { shares[number].figures.cancelled += 1 }
    }

    // MARK: Removal from the line

    /// Takes a request out of its line, from any position.
    ///
    /// - Parameter reason: nil: its task was cancelled.
    /// - Returns: whether the request was there.
    mutating func withdraw(_ request: Request, _ reason: Refusal.Reason?) -> Bool {
        guard request.state == .waiting else { return false }
        let number = request.number
        takeOut(of: number)
        if let reason {
            refuse(request, reason)
        } else {
            request.state = .over
            shares[number].figures.cancelled += 1
        }
        let gone = shares[number].line.count - shares[number].figures.waiting
        if gone > 32, gone * 2 > shares[number].line.count {
            // Such requests hold no references (I2 of Request.swift), so no user object is released here.
            _ = shares[number].line.removeAll { $0.state != .waiting }
        }
        return true
    }

    /// Refuses every request from now on.
    mutating func close() { isClosed = true }

    /// Takes out one of the waiting requests, and counts it as refused.
    mutating func takeAny() -> Request? {
        guard let number = order.next, let request = takeFirst(of: number) else { return nil }
        refuse(request, .closed)
        return request
    }

    private mutating func refuse(_ request: Request, _ reason: Refusal.Reason) {
        request.state = .over
        shares[request.number].figures.count(reason)
    }

    private mutating func takeFirst(of number: Int) -> Request? {
        while let request = shares[number].line.popFirst() {
            guard request.state == .waiting else { continue }
            takeOut(of: number)
            return request
        }
        return nil
    }

    /// Changes how many requests wait or run.
    private mutating func count(_ number: Int, _ change: (inout TenantFigures) -> Void) {
        let wasActive = shares[number].isActive
        change(&shares[number].figures)
        let isActive = shares[number].isActive
        if isActive != wasActive {
            let weight = shares[number].figures.weight
            activeWeight += isActive ? weight : -weight
        }
    }

    private mutating func takeOut(of number: Int) {
        waiting -= 1
        count(number) { $0.waiting -= 1 }
        if shares[number].figures.waiting == 0 { order.leave(number) }  // I2
    }
}
