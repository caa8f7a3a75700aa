import Glibc
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite struct PropertyTests {
    private func smallest<Value: Sendable>(
        _ generator: Generator<Value>, breaking isBroken: @escaping (Value) -> Bool
    ) async throws -> Value {
        let outcome = await check(generator, options: PropertyOptions(cases: 1_000, seed: 7)) { value in
            isBroken(value) ? "broken" : nil
        }
        guard case .failed(let counterexample) = outcome else { throw NotFound() }
        return counterexample.value
    }

    struct NotFound: Error {}

    @Test func `a sum shrinks to its bound`() async throws {
        let numbers = Generator<[Int]>.array(of: .int(in: 0...100), count: 0...20)
        let found = try await smallest(numbers) { $0.reduce(0, +) >= 250 }
        #expect(found.reduce(0, +) == 250)
        #expect(found.count == 3, "\(found)")
    }

    @Test func `a shrunk value keeps what its generator establishes`() async throws {
        let pairs = Generator<[Int]>.array(of: .int(in: 0...1_000), count: 1...30).flatMap { values in
            Generator<Int>.int(in: 0...values.count - 1).map { (values, $0) }
        }
        let found = try await smallest(pairs) { $0.0[$0.1] >= 700 }
        #expect(found.0 == [700] && found.1 == 0)
    }

    @Test func `a tape replays its value, also as text`() throws {
        let generator = Generator<[Int]>.array(of: .int(in: 0...1_000_000), count: 0...50)
        for seed in 0..<100 {
            var source = Source(seed: UInt64(seed))
            let value = try generator.value(from: &source)
            var replay = Source(replaying: try #require(Tape(source.tape.description)))
            #expect(try generator.value(from: &replay) == value)
        }
    }

    @Test func `a seed makes the same cases every time`() async {
        func run() async -> [Int] {
            let seen = Locked<[Int]>([])
            _ = await check(.int(in: 0...1_000_000), options: PropertyOptions(cases: 50, seed: 3)) { value in
                seen.withLock { $0.append(value) }
                return nil
            }
            return seen.withLock { $0 }
        }
        let (first, second) = (await run(), await run())
        #expect(first == second && Set(first).count > 40)
    }

    @MainActor private static var sum = 0

    @Test @MainActor func `a property of the main actor is checked there`() async {
        Self.sum = 0
        var count = 0
        await forAll(.int(in: 1...1), cases: 10) { number in
            MainActor.assertIsolated()
            count += number
            Self.sum += number
        }
        let outcome = await check(.int(in: 0...9), options: PropertyOptions(cases: 500, seed: 1)) { number in
            Self.sum += 1
            return number > 4 ? "large" : nil
        }
        guard case .failed(let found) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(count == 10 && Self.sum > 10 && found.value == 5)
    }

    @Test func `labels are counted`() async throws {
        let outcome = await check(
            .int(in: 0...9), options: PropertyOptions(cases: 1_000, seed: 1),
            classify: { $0 == 0 ? ["zero"] : [] }, { _ in nil })
        guard case .held(let cases, let labels) = outcome else { throw NotFound() }
        #expect(cases == 1_000)
        #expect((50...150).contains(labels["zero"] ?? 0))
    }

    @Test func `a generator that discards all is abandoned`() async {
        let outcome = await check(
            Generator<Int>.int(in: 0...9).filter { $0 > 9 }, options: PropertyOptions(cases: 20, seed: 1)
        ) { _ in nil }
        guard case .gaveUp(let cases, let discarded) = outcome else {
            Issue.record("not given up")
            return
        }
        #expect(cases == 0 && discarded == 201)
    }

    @Test func `expectations inside forAll count, and hold`() async {
        let runs = Locked(0)
        await forAll(.int(in: 0...9), cases: 30, covering: [.cover(5, "even") { $0 % 2 == 0 }]) { value in
            #expect(value < 10)
            runs.withLock { $0 += 1 }
        }
        #expect(runs.withLock { $0 } == 30)
    }

    @Test func `a counterexample names its location`() async {
        let line = #line + 2
        await withKnownIssue {
            await forAll(.int(in: 7...7), cases: 1, examples: nil) { value in #expect(value < 7) }
        } matching: { issue in
            "\(issue)".contains("PropertyTests.swift:\(line): Expectation failed")
        }
    }

    @Test func `coverage of a property is judged where five cases are expected`() async {
        func hold(_ cases: Int, _ percent: Int, above least: Int) async {
            await forAll(
                .int(in: 0...99), cases: cases, covering: [.cover(percent, "large") { $0 >= least }]
            ) { _ in }
        }
        for (cases, percent) in [(10, 50), (100, 5), (500, 1)] {
            await withKnownIssue {
                await hold(cases, percent, above: 100)
            } matching: { issue in
                "\(issue)".contains("Only 0 % of the cases are 'large'; at least \(percent) % should be.")
            }
            await hold(cases, percent, above: 0)
        }
        // Once with too few cases to judge, and once with enough cases that have the label.
        await hold(9, 50, above: 100)
        await hold(1_000, 40, above: 50)
        await withKnownIssue { await hold(1_000, 60, above: 50) }
    }

    @Test func `frequency, oneOf, element, optional, bool and zip stay in their bounds`() async {
        let generator = Generator<(Int, Bool?)>.zip(
            .frequency([(1, .element(of: [1, 2])), (3, .oneOf([.int(in: 5...6), .int(in: 8...9)]))]),
            Generator<Bool>.bool.optional)
        await forAll(generator, cases: 200) { value in #expect([1, 2, 5, 6, 8, 9].contains(value.0)) }
    }
}

@Suite struct ConcurrencyToolTests {
    @Test(arguments: [1, 2, 8]) func `concurrently runs every body on a thread of its own`(count: Int) {
        let threads = concurrently(count) { _ in UInt(pthread_self()) }
        #expect(threads.count == count)
        #expect(concurrently(count) { $0 } == Array(0..<count))
    }

    @Test func `a gate holds until it is opened`() {
        let (gate, slots) = (Gate(), Slots(count: 1))
        let seen = concurrently(2) { index -> Int in
            if index == 0 {
                slots[0] = 7
                gate.open()
                return 7
            }
            gate.wait()
            return slots[0]
        }
        #expect(seen == [7, 7])
    }
}
