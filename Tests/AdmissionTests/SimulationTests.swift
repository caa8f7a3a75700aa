// SimulationTests - the state of a gate in simulated time, so that the results do not depend on this machine.

@_spi(Faces) import CompositeOperationsBasics
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

@testable import Admission

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct SimulationTests {
    /// Slots that serve, callers that arrive, and a clock that jumps from one event to the next.
    struct Simulation {
        var state: GateState
        let tenants: [Tenant]
        var random: SplitMix64
        private(set) var now_ns: UInt64 = 0
        /// The end times of the running requests.
        private var ends: [(at_ns: UInt64, request: Request)] = []
        private(set) var refusals: [Refusal.Reason: Int] = [:]
        /// For each tenant, the greatest number of starts between the arrival and the start of a request.
        private(set) var startsUntil: [Int: Int] = [:]
        private var starts = 0
        private var startsAtAsking: [ObjectIdentifier: Int] = [:]

        init(width: Int, weights: [Int], charging: AdmissionGate.Charging = .operations, seed: UInt64) {
            state = GateState(width: width, charging: charging)
            random = SplitMix64(seed: seed)
            let gate = AdmissionGate(width: width, charging: charging)
            tenants = weights.map { gate.tenant("of weight \($0)", weight: $0) }
            for weight in weights {
                _ = state.addTenant("of weight \(weight)", weight: weight, limit: nil, whenFull: .refuse)
            }
        }

        mutating func exponential_ns(_ mean_ns: Double) -> UInt64 {
            let uniform = Double(random.next() >> 11) / Double(1 << 53)
            return UInt64(-mean_ns * Double.log(1 - uniform))
        }

        /// Advances the clock to `limit_ns`, and processes the ends on the way.
        mutating func advance(to limit_ns: UInt64, service: (inout Simulation, Request) -> UInt64) {
            while let first = ends.indices.min(by: { ends[$0].at_ns < ends[$1].at_ns }),
                ends[first].at_ns <= limit_ns
            {
                let end = ends.remove(at: first)
                now_ns = end.at_ns
                state.end(end.request, now_ns: now_ns)
                while let next = state.next(now_ns: now_ns) {
                    switch next {
                    case .begins(let request): begin(request, service)
                    case .refused(_, let reason): refusals[reason, default: 0] += 1
                    }
                }
            }
            now_ns = max(now_ns, limit_ns)
        }

        mutating func ask(
            _ tenant: Int, within deadline_ns: UInt64? = nil,
            service: (inout Simulation, Request) -> UInt64
        ) {
            let request = Request(
                tenants[tenant], cost: 1, asked_ns: now_ns, deadline_ns: deadline_ns.map { now_ns + $0 },
                means: .call(body: {}, orElse: nil))
            startsAtAsking[ObjectIdentifier(request)] = starts
            switch state.ask(request, now_ns: now_ns, canWait: true) {
            case .begins: begin(request, service)
            case .waits, .wouldWait: break
            case .refused(let refusal): refusals[refusal.reason, default: 0] += 1
            }
        }

        private mutating func begin(_ request: Request, _ service: (inout Simulation, Request) -> UInt64) {
            ends.append((now_ns + service(&self, request), request))
            let waited = starts - startsAtAsking.removeValue(forKey: ObjectIdentifier(request))!
            startsUntil[request.number] = max(startsUntil[request.number] ?? 0, waited)
            starts += 1
        }
    }

    @Test(arguments: [AdmissionGate.Charging.operations, .time], [1, 2, 8])
    func `under overload each tenant gets its share`(charging: AdmissionGate.Charging, width: Int) {
        var simulation = Simulation(width: width, weights: [1, 2, 7], charging: charging, seed: 1)
        for tenant in 0..<3 {
            for _ in 0..<20_000 { simulation.ask(tenant) { one, _ in one.exponential_ns(1e6) } }
        }
        simulation.advance(to: 10_000_000_000 / UInt64(width)) { one, _ in one.exponential_ns(1e6) }
        let got = simulation.state.figures.map {
            charging == .time ? $0.ran / .seconds(1) : Double($0.started)
        }
        expectShares(got, [0.1, 0.2, 0.7])
    }

    @Test func `charged by time, tenants whose bodies take longer begin fewer`() {
        var simulation = Simulation(width: 4, weights: [1, 1, 2], charging: .time, seed: 2)
        let service: (inout Simulation, Request) -> UInt64 = { one, request in
            one.exponential_ns([1e6, 10e6, 1e6][request.number])
        }
        for tenant in 0..<3 { for _ in 0..<20_000 { simulation.ask(tenant, service: service) } }
        simulation.advance(to: 10_000_000_000, service: service)
        expectShares(simulation.state.figures.map { $0.ran / .seconds(1) }, [0.25, 0.25, 0.5])
    }

    private func expectShares(_ got: [Double], _ shares: [Double]) {
        let all = got.reduce(0, +)
        for (got, share) in zip(got, shares) { #expect(abs(got / all / share - 1) < 0.05) }
    }

    @Test func `a silent tenant begins within one turn of each waiting tenant`() {
        var simulation = Simulation(width: 2, weights: [1, 2, 7, 1], seed: 3)
        let service: (inout Simulation, Request) -> UInt64 = { one, _ in one.exponential_ns(1e6) }
        for tenant in 0..<3 { for _ in 0..<20_000 { simulation.ask(tenant, service: service) } }
        for _ in 0..<200 {
            let pause_ns = simulation.exponential_ns(5e6)
            simulation.advance(to: simulation.now_ns + pause_ns, service: service)
            while simulation.state[3].figures.waiting > 0 {
                simulation.advance(to: simulation.now_ns + 1_000_000, service: service)
            }
            // Waits long enough that the tenant has had no more than its share.
            simulation.advance(to: simulation.now_ns + 11_000_000, service: service)
            simulation.ask(3, service: service)
        }
        #expect(simulation.state[3].figures.started >= 199)
        #expect(simulation.startsUntil[3]! <= 4)
    }

    @Test func `a line releases waiters that left it`() {
        let gate = AdmissionGate(width: 1)
        let tenant = gate.tenant("one")
        var state = GateState(width: 1, charging: .operations)
        _ = state.addTenant("one", weight: 1, limit: nil, whenFull: .refuse)
        let requests = (0..<1_000).map { _ in
            Request(tenant, cost: 1, asked_ns: 0, deadline_ns: nil, means: .call(body: {}, orElse: nil))
        }
        for request in requests { _ = state.ask(request, now_ns: 0, canWait: true) }
        for request in requests[1..<999] {
            let (first, again) = (state.withdraw(request, nil), state.withdraw(request, nil))
            #expect(first && !again)
        }
        #expect(state[0].line.count < 70)
        state.end(requests[0], now_ns: 1)
        guard case .begins(let last) = state.next(now_ns: 1) else {
            Issue.record("the last one does not begin")
            return
        }
        #expect(last === requests[999])
    }

    /// Requests arrive at twice the rate of service, each with a deadline.
    @Test(arguments: [1, 2, 8], [1, 2, 3] as [UInt64])
    func `at twice the capacity admitted requests meet deadlines`(width: Int, seed: UInt64) {
        var simulation = Simulation(width: width, weights: [1, 2, 7], seed: seed)
        let service: (inout Simulation, Request) -> UInt64 = { one, _ in one.exponential_ns(1e6) }
        let between_ns = 1e6 / Double(width) / 2
        for _ in 0..<40_000 {
            let pause_ns = simulation.exponential_ns(between_ns)
            simulation.advance(to: simulation.now_ns + pause_ns, service: service)
            simulation.ask(Int(simulation.random.next() % 3), within: 50_000_000, service: service)
        }
        simulation.advance(to: simulation.now_ns + 10_000_000_000, service: service)
        let figures = simulation.state.figures
        let started = figures.reduce(0) { $0 + $1.started }
        let expired = figures.reduce(0) { $0 + $1.expired }
        let late = figures.reduce(0) { $0 + $1.late }
        #expect(started + expired + late == 40_000)
        #expect(Double(started) >= 0.99 * Double(started + expired))
        // This holds even for the tenant of the lowest weight, which the others affect most.
        for figures in figures {
            #expect(Double(figures.started) >= 0.985 * Double(figures.started + figures.expired))
        }
        // The slots stay in use: the refused requests could not have been served in time.
        #expect(started > 18_000)
        #expect(late > 15_000)
    }
}
