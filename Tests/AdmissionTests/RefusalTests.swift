// RefusalTests - requests that do not begin: limits, deadlines, cancellations, closing.

import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

@testable import Admission

@Suite(.inTurn, .watched(testLimit), .leavesNothing)
struct RefusalTests {
    // MARK: Limits

    @Test func `one waiter too many is refused`() async throws {
        let held = try HeldGate()
        let tenant = held.gate.tenant("free", limit: 2)
        let ran = Count()
        try tenant.submit { ran.add() }
        try tenant.submit { ran.add() }
        #expect(throws: Refusal.self) { try tenant.submit { ran.add() } }
        do {
            try await tenant.run { _ = ran.add() }
            Issue.record("it was let in")
        } catch let refusal as Refusal {
            #expect(refusal.reason == .full)
            #expect(refusal.tenant == "free")
            #expect(
                "\(refusal)" == "Tenant \"free\": not started, because its queue of requests is full.")
        }
        try await held.end()
        #expect(ran.value == 2)
        #expect(tenant.figures.full == 2)
        #expect(tenant.figures.addUp)
    }

    @Test func `with a limit of 0 nothing waits`() async throws {
        let held = try HeldGate()
        for policy in Tenant.WhenFull.allCases where policy != .wait {
            let tenant = held.gate.tenant("\(policy)", limit: 0, whenFull: policy)
            #expect(throws: Refusal.self) { try tenant.submit {} }
            #expect(tenant.figures.full == 1)
        }
        try await held.end()
        try await AdmissionGate().tenant("free", limit: 0).run {}
    }

    @Test func `a new one replaces the oldest`() async throws {
        let held = try HeldGate()
        let tenant = held.gate.tenant("latest", limit: 2, whenFull: .dropOldest)
        let (order, dropped) = (Log<Int>(), Log<Int>())
        for number in 1...5 {
            try tenant.submit {
                order.add(number)
            } orElse: { refusal in
                #expect(refusal.reason == .dropped)
                dropped.add(number)
            }
        }
        try await held.end()
        #expect(order.entries == [4, 5])
        #expect(await eventually { dropped.entries.sorted() == [1, 2, 3] })
        #expect(tenant.figures.dropped == 3)
        #expect(tenant.figures.addUp)
    }

    @Test func `a request suspends its task until its turn, however many wait`() async throws {
        let held = try HeldGate()
        let tenant = held.gate.tenant("patient", limit: 1, whenFull: .wait)
        let ran = Count()
        let tasks = (0..<10).map { _ in Task { try await tenant.run { _ = ran.add() } } }
        #expect(await eventually { held.gate.waiting == 10 })
        #expect(throws: Refusal.self) { try tenant.submit {} }
        try await held.end()
        for task in tasks { try await task.value }
        #expect(ran.value == 10)
        #expect(tenant.figures.addUp)
    }

    @Test func `a new limit applies to later ones`() async throws {
        let held = try HeldGate()
        let tenant = held.gate.tenant("free", limit: 0)
        tenant.limit = nil
        for _ in 0..<10 { try tenant.submit {} }
        tenant.limit = 3
        #expect(tenant.limit == 3)
        #expect(throws: Refusal.self) { try tenant.submit {} }
        #expect(tenant.figures.waiting == 10)
        try await held.end()
    }

    // MARK: Deadlines

    @Test func `a waiter times out at its deadline, not when its turn comes`()
        async throws
    {
        let held = try HeldGate()
        let tenant = held.gate.tenant("urgent")
        let told = Log<Refusal.Reason>()
        try tenant.submit(startingBy: .now + .milliseconds(20)) {
            recordStart()
        } orElse: {
            told.add($0.reason)
        }
        do {
            try await tenant.run(startingBy: .now + .milliseconds(30)) { recordStart() }
        } catch let refusal as Refusal {
            #expect(refusal.reason == .expired)
        }
        #expect(held.gate.running == 1)  // the slot is still held
        #expect(tenant.figures.expired == 2)
        try await held.end()
        #expect(told.entries == [.expired])
        #expect(tenant.figures.addUp)
    }

    @Test func `an expired deadline is refused, even if a slot is free`() async throws {
        let tenant = AdmissionGate().tenant("late")
        for deadline in [ContinuousClock.now, .now - .seconds(1)] {
            #expect(throws: Refusal.self) { try tenant.submit(startingBy: deadline) {} }
        }
        #expect(tenant.figures.expired == 2)
    }

    @Test func `a request whose turn has come leaves no timer`() async throws {
        let held = try HeldGate()
        let tenant = held.gate.tenant("one")
        weak var left: Request?
        do {
            let request = Request(
                tenant, cost: 1, deadline_ns: AdmissionGate.now_ns() + 3_600_000_000_000,
                means: .call(body: {}, orElse: nil))
            left = request
            guard case .waits = held.gate.ask(request, canWait: true) else {
                Issue.record("it does not wait")
                return
            }
        }
        #expect(left?.timer != nil)
        held.letGo()
        await held.gate.idle()
        // A leftover timer would retain the request.
        #expect(await eventually { left == nil })
        try await held.end()
    }

    @Test func `a distant deadline is none`() async throws {
        let tenant = AdmissionGate().tenant("patient")
        try await tenant.run(startingBy: .now + .seconds(1 << 40)) {}
        #expect(tenant.figures.ended == 1)
    }

    @Test func `a request that cannot begin in time is refused at once, with its expected wait`()
        async throws
    {
        let held = try HeldGate()
        let tenant = held.gate.tenant("urgent")
        // The gate has to learn how long a turn takes: the slot is held until another request's
        // deadline has passed.
        await #expect(throws: Refusal.self) {
            try await tenant.run(startingBy: .now + .milliseconds(100)) { recordStart() }
        }
        let next = Gate()
        let begun = Gate()
        try tenant.submit {
            begun.open()
            next.wait()
        }
        held.letGo()
        begun.wait()
        do {
            try await tenant.run(startingBy: .now + .milliseconds(40)) { recordStart() }
        } catch let refusal as Refusal {
            #expect(refusal.reason == .late)
            #expect(try #require(refusal.expectedWait) > .milliseconds(40))
            #expect("\(refusal)".contains("longer than its deadline"))
        }
        next.open()
        try await held.end()
    }

    // MARK: Cancellation

    @Test func `a cancelled task leaves the line at once`() async throws {
        let held = try HeldGate()
        let tenant = held.gate.tenant("impatient")
        let tasks = (0..<100).map { _ in
            Task { try await tenant.run { recordStart() } }
        }
        #expect(await eventually { tenant.figures.waiting == 100 })
        let last = Count()
        try tenant.submit { last.add() }
        for task in tasks { task.cancel() }
        for task in tasks {
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        #expect(held.gate.running == 1)
        #expect(tenant.figures.cancelled == 100)
        #expect(tenant.figures.waiting == 1)
        try await held.end()
        #expect(last.value == 1)
        #expect(tenant.figures.addUp)
    }

    @Test func `a task cancelled during its request does not wait`() async throws {
        let held = try HeldGate(workers: 2)
        let tenant = held.gate.tenant("impatient")
        for round in 0..<scaled(3_000) {
            let task = Task.detached { try await tenant.run { recordStart() } }
            for _ in 0..<round % 50 * 4 { _ = threadTime() }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        #expect(tenant.figures.waiting == 0)
        try await held.end()
        #expect(tenant.figures.addUp)
    }

    @Test func `an already cancelled task requests nothing`() async throws {
        let tenant = AdmissionGate().tenant("one")
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await tenant.run { recordStart() }
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(tenant.figures.asked == 0)
    }

    // MARK: The end

    @Test func `a closed gate refuses new requests, and serves waiting ones`() async throws {
        let held = try HeldGate()
        let tenant = held.gate.tenant("one")
        let ran = Count()
        try tenant.submit { ran.add() }
        held.gate.close()
        #expect(throws: Refusal.self) { try tenant.submit { ran.add() } }
        await #expect(throws: Refusal.self) { try await tenant.run { _ = ran.add() } }
        try await held.end()
        #expect(ran.value == 1)
        #expect(tenant.figures.closed == 2)
    }

    @Test func `a closed gate can refuse waiters, too`() async throws {
        let held = try HeldGate()
        let told = Log<Refusal.Reason>()
        let tenants = (0..<3).map { held.gate.tenant("\($0)") }
        for tenant in tenants {
            for _ in 0..<5 {
                try tenant.submit {
                    recordStart()
                } orElse: {
                    told.add($0.reason)
                }
            }
        }
        let task = Task { try await tenants[0].run { recordStart() } }
        #expect(await eventually { held.gate.waiting == 16 })
        held.gate.close(refusesWaiting: true)
        await #expect(throws: Refusal.self) { try await task.value }
        #expect(held.gate.waiting == 0)
        try await held.end()
        #expect(told.entries == Array(repeating: .closed, count: 15))
    }

    @Test func `a wait for an idle gate ends when the last has ended`() async throws {
        let held = try HeldGate()
        let tenant = held.gate.tenant("one")
        let ran = Count()
        for _ in 0..<10 { try tenant.submit { ran.add() } }
        let idle = Task {
            await held.gate.idle()
            return ran.value
        }
        held.letGo()
        #expect(await idle.value == 10)
        try await held.end()
        await AdmissionGate().idle()
    }

    /// The requests are refused one after another, on the same stack.
    @Test(arguments: [Scheduler.ShutdownPolicy.drain, .cancelPending])
    func `waiters at a scheduler shutdown are refused, or run`(policy: Scheduler.ShutdownPolicy)
        async throws
    {
        let count = scaled(100_000)
        let scheduler = try Scheduler(.init(workers: 1))
        let gate = AdmissionGate(on: scheduler)
        let tenant = gate.tenant("one")
        let (begun, held, ran, refused) = (Gate(), Gate(), Count(), Count())
        try tenant.submit {
            begun.open()
            held.wait()
        }
        begun.wait()
        for _ in 0..<count {
            try tenant.submit {
                ran.add()
            } orElse: { refusal in
                #expect(refusal.reason == .closed)
                refused.add()
            }
        }
        async let end: Void = scheduler.shutdown(policy)
        #expect(await eventually { (try? scheduler.submit {}) == nil })
        held.open()
        try await end
        // The worker that the shutdown waits for has notified all of them by the time the shutdown
        // returns.
        #expect(ran.value + refused.value == count)
        #expect(gate.waiting == 0)
        #expect(gate.running == 0)
        #expect(tenant.figures.addUp)
        await gate.idle()
        #expect(throws: Refusal.self) { try tenant.submit {} }
        await #expect(throws: Refusal.self) { try await tenant.run {} }
        #expect(gate.running == 0)
        #expect(tenant.figures.addUp)
    }

    // MARK: Everything at once

    enum Outcome: Hashable { case ran, cancelled, refused(Refusal.Reason) }

    /// Each request gets exactly one answer, and the figures match the callers' counts.
    @Test(arguments: [AdmissionGate.Charging.operations, .time])
    func `nothing is lost, and everything is counted`(charging: AdmissionGate.Charging) async throws {
        for round in 0..<scaled(20) {
            let scheduler = try Scheduler(.init(workers: 2))
            let gate = AdmissionGate(on: scheduler, width: 1 + round % 4, charging: charging)
            let tenants = Tenant.WhenFull.allCases.map {
                gate.tenant("\($0)", weight: 1 + round, limit: 20, whenFull: $0)
            }
            let answers = tenants.map { _ in Log<Outcome>() }
            await withTaskGroup { group in
                for caller in 0..<12 {
                    let (tenant, answers) = (tenants[caller % 3], answers[caller % 3])
                    group.addTask {
                        var random = SplitMix64(seed: UInt64(round * 100 + caller))
                        for _ in 0..<60 { await ask(tenant, answers, &random) }
                    }
                }
                group.addTask {
                    for width in 1...20 {
                        gate.width = 1 + width % 5
                        await Task.yield()
                    }
                    if round % 3 == 2 { gate.close(refusesWaiting: round % 2 == 0) }
                }
            }
            await gate.idle()
            try await scheduler.shutdown()
            for (tenant, answers) in zip(tenants, answers) {
                let (figures, answers) = (tenant.figures, answers.entries)
                #expect(figures.addUp)
                #expect(figures.running == 0 && figures.waiting == 0)
                #expect(answers.count == 240)
                #expect(answers.count { $0 == .ran } == figures.ended)
                for (reason, count) in [
                    (.full, figures.full), (.late, figures.late), (.expired, figures.expired),
                    (.dropped, figures.dropped), (.closed, figures.closed),
                ] as [(Refusal.Reason, Int)] {
                    #expect(answers.count { $0 == .refused(reason) } == count)
                }
            }
        }
    }

    private func ask(_ tenant: Tenant, _ answers: Log<Outcome>, _ random: inout SplitMix64) async {
        let deadline: ContinuousClock.Instant? =
            random.next() % 3 == 0 ? .now + .microseconds(Int(random.next() % 2_000)) : nil
        let cost = 1 + Int(random.next() % 3)
        switch random.next() % 3 {
        case 0:
            do throws(Refusal) {
                try tenant.submit(startingBy: deadline, cost: cost) {
                    answers.add(.ran)
                } orElse: {
                    answers.add(.refused($0.reason))
                }
            } catch { answers.add(.refused(error.reason)) }
        case 1: await answer(answers) { try await tenant.run(startingBy: deadline, cost: cost) {} }
        default:
            let task = Task {
                await answer(answers) {
                    try await tenant.run(startingBy: deadline) { () async in await Task.yield() }
                }
            }
            if random.next() % 2 == 0 { task.cancel() }
            await task.value
        }
    }

    private func answer(_ answers: Log<Outcome>, _ body: () async throws -> Void) async {
        do {
            try await body()
            answers.add(.ran)
        } catch let refusal as Refusal {
            answers.add(.refused(refusal.reason))
        } catch {
            answers.add(.cancelled)
        }
    }
}

private func recordStart() { Issue.record("it was started") }
