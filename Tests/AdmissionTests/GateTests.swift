// GateTests - gates and tenants on real schedulers.

import Admission
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing)
struct GateTests {
    @Test(arguments: [1, 2, 4]) func `three tenants of weight 1, 2 and 7 get their shares`(workers: Int)
        async throws
    {
        let held = try HeldGate(workers: workers, width: workers)
        let order = Log<Int>()
        let tenants = [1, 2, 7].map { held.gate.tenant("\($0)", weight: $0) }
        for tenant in tenants { for _ in 0..<2_000 { try tenant.submit { order.add(tenant.weight) } } }
        #expect(held.gate.waiting == 6_000)
        try await held.end()
        // Only the turns taken while every tenant has requests waiting.
        let turns = order.entries.prefix(2_000)
        for (weight, share) in [(1, 200.0), (2, 400), (7, 1_400)] {
            let turns = Double(turns.count { $0 == weight })
            #expect(abs(turns / share - 1) < 0.05)
        }
        #expect(order.entries.count == 6_000)
        for tenant in tenants {
            #expect(tenant.figures.ended == 2_000)
            #expect(tenant.figures.addUp)
        }
    }

    @Test func `a silent tenant's first request begins after one turn of each waiting tenant`() async throws {
        let held = try HeldGate()
        let order = Log<String>()
        let tenants = [1, 2, 7].map { held.gate.tenant("\($0)", weight: $0) }
        let silent = held.gate.tenant("silent")
        for tenant in tenants { for _ in 0..<200 { try tenant.submit { order.add(tenant.name) } } }
        try tenants[2].submit {
            order.add("asks")
            try? silent.submit { order.add("silent") }
        }
        try await held.end()
        let entries = order.entries
        let asks = try #require(entries.firstIndex(of: "asks"))
        let begins = try #require(entries.firstIndex(of: "silent"))
        #expect(begins - asks <= 3)
    }

    @Test func `the requests of a tenant begin in the order of their submission`() async throws {
        let held = try HeldGate()
        let tenant = held.gate.tenant("one")
        let order = Log<Int>()
        for number in 0..<500 { try tenant.submit(cost: 1 + number % 7) { order.add(number) } }
        try await held.end()
        #expect(order.entries == Array(0..<500))
    }

    @Test func `a request of cost 10 counts as ten`() async throws {
        let held = try HeldGate()
        let order = Log<String>()
        let (dear, cheap) = (held.gate.tenant("dear"), held.gate.tenant("cheap"))
        for _ in 0..<500 {
            try dear.submit(cost: 10) { order.add("dear") }
            try cheap.submit { order.add("cheap") }
        }
        try await held.end()
        let first = order.entries.prefix(440)
        #expect(abs(first.count { $0 == "dear" } - 40) <= 2)
    }

    @Test func `a weight is changed from the next turn on`() async throws {
        let held = try HeldGate()
        let order = Log<String>()
        let (one, other) = (held.gate.tenant("one"), held.gate.tenant("other"))
        for tenant in [one, other] { for _ in 0..<1_000 { try tenant.submit { order.add(tenant.name) } } }
        one.weight = 3
        #expect(one.weight == 3)
        try await held.end()
        #expect(abs(order.entries.prefix(800).count { $0 == "one" } - 600) <= 4)
    }

    // MARK: Slots

    @Test(arguments: [1, 3]) func `no more run than the width`(width: Int) async throws {
        let scheduler = try Scheduler(.init(workers: 4))
        let gate = AdmissionGate(on: scheduler, width: width)
        let (running, most) = (Count(), Locked(0))
        await withThrowingTaskGroup { group in
            for number in 0..<200 {
                let tenant = gate.tenant("\(number % 5)")
                group.addTask {
                    try await tenant.run {
                        let now = running.add()
                        most.withLock { $0 = max($0, now) }
                        for _ in 0..<5 { await Task.yield() }
                        running.add(-1)
                    }
                }
            }
        }
        #expect((1...width).contains(most.withLock { $0 }))
        #expect(gate.figures.isEmpty)
        try await scheduler.shutdown()
    }

    @Test func `more begin at once when the width grows`() async throws {
        let held = try HeldGate(workers: 2)
        let begun = Gate()
        try held.gate.tenant("one").submit { begun.open() }
        #expect(held.gate.waiting == 1)
        held.gate.width = 2
        #expect(held.gate.width == 2)
        begun.wait()
        try await held.end()
    }

    @Test func `as many begin as the width grows by`() async throws {
        let held = try HeldGate(workers: 4)
        let (all, begun) = (Gate(), Count())
        let tenant = held.gate.tenant("one")
        for _ in 0..<3 {
            try tenant.submit {
                begun.add()
                all.wait()
            }
        }
        held.gate.width = 4
        #expect(await eventually { begun.value == 3 })
        all.open()
        try await held.end()
    }

    @Test func `no request waits while a slot is free, whatever begins or ends concurrently`()
        async throws
    {
        let scheduler = try Scheduler(.init(workers: 4))
        let gate = AdmissionGate(on: scheduler, width: 2)
        let tenants = (1...4).map { gate.tenant("\($0)", weight: $0) }
        for _ in 0..<scaled(300) {
            await withThrowingTaskGroup { group in
                for tenant in tenants {
                    group.addTask { for _ in 0..<10 { try tenant.submit {} } }
                    group.addTask { for _ in 0..<5 { try await tenant.run {} } }
                }
            }
            await gate.idle()
        }
        #expect(gate.figures.allSatisfy { $0.addUp && $0.ended == $0.asked })
        try await scheduler.shutdown()
    }

    // MARK: Values and contexts

    @Test func `values and errors are returned; neither need be Sendable`() async throws {
        final class Box { var number = 1 }
        let tenant = AdmissionGate().tenant("one")
        let box = try await tenant.run { Box() }
        #expect(box.number == 1)
        let other = try await tenant.run { () async -> Box in Box() }
        #expect(other.number == 1)
        await #expect(throws: Unexpected.self) { try await tenant.run { throw Unexpected() } }
        #expect(tenant.figures.ended == 3)
        #expect(tenant.gate.running == 0)
    }

    @Test func `bodies run on workers of the gate's scheduler`() async throws {
        let held = try HeldGate()
        let tenant = held.gate.tenant("one")
        let places = Log<Bool>()
        try tenant.submit { places.add(Scheduler.current === held.scheduler) }
        async let one: Void = tenant.run { places.add(Scheduler.current === held.scheduler) }
        async let two: Void = tenant.run { () async in
            await Task.yield()
            places.add(Scheduler.current === held.scheduler)
        }
        held.letGo()
        _ = try await (one, two)
        try await held.end()
        #expect(places.entries == [true, true, true])
    }

    @Test func `a body has the priority of the code that asked for it`() async throws {
        let held = try HeldGate()
        let tenant = held.gate.tenant("one")
        let priorities = Log<Scheduler.Priority>()
        let asked = Gate()
        let other = try Scheduler(.init(workers: 1))
        try other.submit(priority: .high) {
            try? tenant.submit { priorities.add(Scheduler.currentPriority) }
            asked.open()
        }
        asked.wait()
        try tenant.submit { priorities.add(Scheduler.currentPriority) }
        try await held.end()
        try await other.shutdown()
        #expect(priorities.entries == [.high, .default])
    }

    @TaskLocal private static var value = 0

    @Test func `task locals are inherited where the scheduler does so`() async throws {
        let seen = Log<Int>()
        for context in [Scheduler.Context.empty, .inherited] {
            let scheduler = try Scheduler(.init(workers: 1, context: context))
            let gate = AdmissionGate(on: scheduler)
            let tenant = gate.tenant("one")
            let held = Gate()
            try tenant.submit { held.wait() }
            try Self.$value.withValue(7) { try tenant.submit { seen.add(Self.value) } }
            held.open()
            await gate.idle()
            try await scheduler.shutdown()
        }
        #expect(seen.entries == [0, 7])
    }

    // MARK: Misuse

    @Test(arguments: ["width", "weight", "most", "limit", "cost"])
    func `misuse traps with a sentence`(kind: String) async throws {
        let result = await #expect(
            processExitsWith: .failure, observing: [\.standardErrorContent]
        ) { [kind] in
            switch kind {
            case "width": _ = AdmissionGate(width: 0)
            case "weight": _ = AdmissionGate().tenant("one", weight: 0)
            case "most": _ = AdmissionGate().tenant("one", weight: 1 << 21)
            case "limit": _ = AdmissionGate().tenant("one", limit: -1)
            default: try AdmissionGate().tenant("one").submit(cost: 0) {}
            }
        }
        let sentences = [
            "width": "AdmissionGate: the width is 0, and must be at least 1",
            "weight": "Tenant: the weight is 0, and must be between 1 and 1048576",
            "most": "Tenant: the weight is 2097152, and must be between 1 and 1048576",
            "limit": "Tenant: the limit is -1, and must not be negative",
            "cost": "Tenant: the cost is 0, and must be between 1 and 1048576",
        ]
        let said = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
        #expect(said.contains(sentences[kind]!))
    }

    @Test func `a released tenant leaves its number, but no figures`() async throws {
        let gate = AdmissionGate()
        for _ in 0..<100 {
            let tenant = gate.tenant("one", weight: 3)
            try await tenant.run {}
            #expect(gate.figures.map(\.name) == ["one"])
        }
        #expect(gate.figures.isEmpty)
    }

    @Test func `a released tenant is forgotten, whatever is left in its line`() async throws {
        let held = try HeldGate()
        do {
            let tenant = held.gate.tenant("gone soon")
            let told = Gate()
            try tenant.submit {}
            try tenant.submit(startingBy: .now + .milliseconds(1)) {
            } orElse: { _ in
                told.open()
            }
            told.wait()
        }
        try await held.end()
        #expect(await eventually { held.gate.figures.isEmpty })
    }

    @Test func `a tenant lives while its requests wait or run`() async throws {
        let held = try HeldGate()
        let ran = Count()
        try held.gate.tenant("gone soon").submit { ran.add() }
        #expect(held.gate.figures.map(\.name).sorted() == ["gone soon", "holder"])
        try await held.end()
        #expect(ran.value == 1)
        #expect(held.gate.figures.isEmpty)
    }
}

func scaled(_ count: Int) -> Int { max(1, Int(Double(count) * min(1, stressScale))) }
