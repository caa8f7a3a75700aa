// LawTests.swift - the laws detect their saboteurs, hold for our schedulers, and find the fault in a faulty one.

import ConformanceSubjects
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Testing

@testable import ConformanceTesting

@Suite(.serialized, .inTurn, .watched(.seconds(240))) struct LawTests {
    @Test(arguments: Subject.ours + [.plainPool])
    func `a law sees its saboteur, and holds`(_ subject: Subject) async throws {
        var asked = 0
        for law in Law.all {
            let verdict = await check(law, of: subject, options: LawOptions(seed: 7, cases: 3))
            #expect(verdict.isGood, "\(law.id) of \(subject.name): \(verdict)")
            if case .held(3, 1...) = verdict { asked += 1 }
        }
        #expect(asked >= 14)
    }

    @Test func `nested barriers and suspensions are checked with a queue that has them`() async {
        for law in Law.all where ["B1", "B2", "P3"].contains(law.id) {
            // On a busy machine the queue may have only one thread for a while; then even a sabotaged barrier runs alone.
            let options = LawOptions(seed: 7, cases: 3, sabotagedCases: 5_000)
            let verdict = await check(law, of: .dispatchQueue, options: options)
            guard case .held(3, _) = verdict else {
                Issue.record("\(law.id): \(verdict)")
                continue
            }
        }
    }

    @Test func `each law applies to some subject here, and names are unique`() throws {
        #expect(Law.all.count >= 35 && Set(Law.all.map(\.id)).count == Law.all.count)
        #expect(Set(Law.all.map(\.sentence)).count == Law.all.count)
        let instances = try (Subject.ours + [.plainPool, .dispatchQueue]).map { try $0.make() }
        defer { for instance in instances { instance.end() } }
        for law in Law.all {
            #expect(instances.contains { law.lack(of: $0) == nil }, "\(law.id) is asked of nobody")
        }
    }

    @Test func `a pool whose drain forgets running bodies is caught, with a small, drawn case`()
        async throws
    {
        let law = try #require(Law.all.first { $0.id == "D1" })
        let verdict = await check(
            law, of: .brokenPool, options: LawOptions(seed: 1, cases: 20_000, sabotagedCases: 5_000))
        guard case .violated(let found) = verdict else {
            Issue.record("\(verdict)")
            return
        }
        #expect(found.reason.contains("closures had ended at its return"))
        #expect(found.load.total <= 24, "\(found.load)")
        if let trace = found.trace {
            #expect(trace.threads.contains("submitter 1") && trace.threads.contains("caller of drain"))
            #expect(trace.events.contains { $0.text == "drain returns" })
        }
        var again = 0
        for _ in 0..<3_000 where again == 0 {
            let options = LawOptions(replay: found.tape)
            if case .violated = await check(law, of: .brokenPool, options: options) { again += 1 }
        }
        #expect(again == 1, "\(found)")
    }

    @Test func `without claims only closure laws are checked`() async throws {
        let subject = Subject("nothing") { Instance { body in start(body) } }
        var (asked, lacks) = (Set<String>(), Set<String>())
        for law in Law.all {
            switch await check(law, of: subject, options: LawOptions(cases: 1)) {
            case .notClaimed(let need): lacks.insert(need.description)
            case .held: asked.insert(law.id)
            case let other: Issue.record("\(law.id): \(other)")
            }
        }
        #expect(asked == ["X1", "X2", "X3", "X5", "X6", "X7"])
        #expect(lacks.isSuperset(of: ["fair", "drain", "width of 1 or more", "operations", "tasks"]))
    }

    @Test func `a law blind to its saboteur is reported, as is a subject that cannot be made`()
        async throws
    {
        struct Fault: Error {}
        let law = Law("Z1", "Nothing.", saboteur: Saboteur("does nothing") { _, acts in acts.act() }) { _ in }
        guard case .blind(4) = await check(law, of: .plainPool, options: LawOptions(sabotagedCases: 4)) else {
            Issue.record("a law that asks nothing was believed")
            return
        }
        let nobody = Subject("nobody") { throw Fault() }
        guard case .failed(let reason) = await check(law, of: nobody) else {
            Issue.record("what cannot be made was asked")
            return
        }
        #expect(reason.contains("Fault"))
        // A violation counts as a detection only if the saboteur acted, and only if the law holds without the saboteur.
        // Here the law always fails.
        for acts in [false, true] {
            let saboteur = Saboteur("sleeps") { _, made in if acts { made.act() } }
            let guilty = Law("Z2", "Nothing.", saboteur: saboteur) { _ in throw Violation(reason: "always") }
            let verdict = await check(guilty, of: .plainPool, options: LawOptions(sabotagedCases: 2))
            guard case .blind = verdict else {
                Issue.record("a law that always fails was believed")
                return
            }
        }
    }

    @Test func `a saboteur that did nothing was not detected, though the law fails then`() async {
        let asked = Locked(0)
        let law = Law("Z5", "Nothing.", saboteur: Saboteur("sleeps") { _, _ in }) { _ in
            let isOdd = asked.withLock { asked in
                asked += 1
                return asked % 2 == 1
            }
            if isOdd { throw Violation(reason: "now and then") }
        }
        guard case .blind(1) = await check(law, of: .plainPool, options: LawOptions(sabotagedCases: 1)) else {
            Issue.record("a saboteur that did nothing was believed")
            return
        }
    }

    @Test(arguments: [false, true])
    func `a progress law detects its saboteur by a missing event, any other law by a wrong result`(
        _ isOfProgress: Bool
    ) async {
        let saboteur = Saboteur("takes a claim away") { instance, acts in
            acts.act()
            instance.claims = []
        }
        let law = Law("Z4", "Nothing.", isOfProgress: isOfProgress, saboteur: saboteur) { trial in
            if trial.instance.claims.isEmpty { try trial.wait(for: Latch(1), "a latch that nobody opens") }
        }
        let options = LawOptions(cases: 1, limit: .milliseconds(5), sabotagedCases: 2)
        switch await check(law, of: .plainPool, options: options) {
        case .held(1, 1): #expect(isOfProgress)
        case .blind(2): #expect(!isOfProgress)
        case let other: Issue.record("\(other)")
        }
    }

    @Test func `handlers are notified of each end, including late handlers`() {
        let (handlers, told) = (EndHandlers(), Locked<[String]>([]))
        handlers.add { end in told.withLock { $0.append("first \(end)") } }
        handlers.tell(.finished)
        handlers.add { end in told.withLock { $0.append("second \(end)") } }
        handlers.tell(.cancelled)
        let all = told.withLock { $0 }
        #expect(all == ["first finished", "second finished", "first cancelled", "second cancelled"])
    }

    @Test func `a law hung in a call times out`() async {
        let isOver = Gate()
        defer { isOver.open() }  // releases the threads that hang
        let hanging = Law("Z3", "Nothing.", saboteur: Saboteur("sleeps") { _, _ in }) { _ in isOver.wait() }
        let options = LawOptions(limit: .milliseconds(5), replay: Tape([]))
        guard case .violated(let found) = await check(hanging, of: .plainPool, options: options) else {
            Issue.record("it did not hang")
            return
        }
        #expect(found.reason.contains("a call had not returned after"))
    }

    @Test func `a budget ends a check after the case that exhausts it`() async throws {
        let (law, runs) = (try #require(Law.all.first), Locked(0))
        let subject = Subject("counted") {
            runs.withLock { $0 += 1 }
            return Instance { body in start(body) }
        }
        let options = LawOptions(cases: .max, budget: .milliseconds(50))
        guard case .held(let cases, _) = await check(law, of: subject, options: options) else {
            Issue.record("it did not hold")
            return
        }
        #expect(cases >= 8 && cases < runs.withLock { $0 })
    }

    @Test func `a cancelled task checks no further case`() async throws {
        let law = try #require(Law.all.first)
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await check(law, of: .plainPool, options: LawOptions(cases: .max, budget: .seconds(100)))
        }
        guard case .failed("the task was cancelled") = await task.value else {
            Issue.record("it went on")
            return
        }
    }

    @Test func `a trace is drawn with a column for each thread`() {
        let tracer = Tracer(isOn: true)
        tracer.name("submitter")
        tracer.note("submit 1")
        let gate = Gate()
        start {
            tracer.note("1 begins")
            gate.open()
        }
        gate.wait()
        tracer.note("returns")
        #expect(
            tracer.trace?.description == """
                submitter | thread 2
                ----------+---------
                submit 1
                          | 1 begins
                returns
                """)
        #expect(Tracer(isOn: false).trace == nil)
    }
}
