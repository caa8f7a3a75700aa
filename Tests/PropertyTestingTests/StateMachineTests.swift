// StateMachineTests.swift - commands against a model: faults in some state, or under concurrency, are found and shrunk.

import PropertyTesting
import PropertyTestingSupport
import Testing

/// A stack of numbers, which may have faults.
private final class NumberStack: Sendable {
    private let numbers = Locked<[Int]>([])
    /// The depth at which pushed numbers are lost.
    let room: Int
    init(room: Int) { self.room = room }

    var count: Int { numbers.withLock { $0.count } }
    func push(_ number: Int) { numbers.withLock { if $0.count < room { $0.append(number) } } }
    func pop() -> Int? { numbers.withLock { $0.popLast() } }
    /// Pops in two steps, not atomically.
    func popInTwoSteps() async -> Int? {
        let last = numbers.withLock { $0.last }
        await Task.yield()
        numbers.withLock { if !$0.isEmpty { $0.removeLast() } }
        return last
    }
}

private struct StackMachine: StateMachine {
    enum Command: Hashable, Sendable {
        case push(Int)
        case pop
    }
    var room = Int.max
    var popsInTwoSteps = false
    var looksInside = false
    let ended = Locked(0)

    var initial: [Int] { [] }
    func makeSystem() -> NumberStack { NumberStack(room: room) }
    func commands(in model: [Int]) -> Generator<Command> {
        // A precondition: an empty stack is not popped.
        let push = Generator<Int>.int(in: 0...9).map { Command.push($0) }
        return model.isEmpty ? push : .oneOf([push, .element(of: [.pop])])
    }
    func run(_ command: Command, on stack: NumberStack) async -> Int? {
        switch command {
        case .push(let number):
            stack.push(number)
            return nil
        case .pop: return popsInTwoSteps ? await stack.popInTwoSteps() : stack.pop()
        }
    }
    func step(_ model: [Int], _ command: Command, _ answer: Int?) -> [Int]? {
        switch command {
        case .push(let number): model + [number]
        case .pop: model.last == answer ? Array(model.dropLast()) : nil
        }
    }
    func fault(of stack: NumberStack, in model: [Int]) -> String? {
        looksInside && stack.count != model.count ? "it has \(stack.count) numbers" : nil
    }
    func end(_ stack: NumberStack) { ended.withLock { $0 += 1 } }
}

@Suite(.watched(.seconds(120))) struct StateMachineTests {
    private struct NothingFound: Error {
        let text: String
    }

    private func counterexample(
        _ machine: StackMachine, _ commands: Generator<CommandProgram>, repetitions: Int = 1
    ) async throws -> Counterexample<CommandProgram> {
        let options = PropertyOptions(cases: 500, seed: 3, shrinkLimit: 2_000 / repetitions)
        let outcome = await check(commands, options: options) { commands in
            for _ in 0..<repetitions {
                if let fault = await checkCommands(commands, of: machine) { return fault }
            }
            return nil
        }
        guard case .failed(let counterexample) = outcome else { throw NothingFound(text: "\(outcome)") }
        return counterexample
    }

    @Test func `a stack answers as its model, one command after another and at the same time`() async {
        let machine = StackMachine(looksInside: true)
        await forAllCommands(of: machine)
        await forAllCommands(of: machine, branches: 3, cases: 50, repetitions: 3)
        // Each system is ended.
        #expect(machine.ended.withLock { $0 } >= 250)
    }

    @Test func `a wrong answer is found, and the commands that lead to it are few`() async throws {
        let found = try await counterexample(StackMachine(room: 3), CommandProgram.all())
        #expect(found.value.count == 5)
        #expect(
            found.reason == """
                push(0) = nil
                push(0) = nil
                push(0) = nil
                push(1) = nil
                pop = Optional(0)
                that is not the answer in the state [0, 0, 0, 1]
                """)
    }

    @Test func `a wrong state is found before it leads to a wrong answer`() async throws {
        let found = try await counterexample(StackMachine(room: 3, looksInside: true), CommandProgram.all())
        #expect(found.reason.hasSuffix("in the state [0, 0, 0, 0]: it has 3 numbers"), "\(found.reason)")
        #expect(found.value.count == 4)
    }

    @Test func `a fault seen only in parallel is found, and drawn`() async throws {
        let machine = StackMachine(popsInTwoSteps: true)
        let alone = await check(CommandProgram.all(), options: PropertyOptions(cases: 200, seed: 3)) {
            await checkCommands($0, of: machine)
        }
        guard case .held = alone else { throw NothingFound(text: "\(alone)") }
        let found = try await counterexample(
            machine, CommandProgram.all(count: 0...6, branches: 2), repetitions: 10)
        #expect(found.reason.contains("at the same time, in the state"))
        #expect(found.reason.contains("<- no order gives this answer"))
        #expect(found.value.count <= 12, "\(found)")
    }

    @Test func `commands replay from a line`() async throws {
        let found = try await counterexample(StackMachine(room: 3), CommandProgram.all())
        let again = await check(
            CommandProgram.all(), options: PropertyOptions(seed: 1, replay: found.tape, shrinkLimit: 0)
        ) { await checkCommands($0, of: StackMachine(room: 3)) }
        guard case .failed(let same) = again else { throw NothingFound(text: "\(again)") }
        #expect(same.reason == found.reason)
    }
}

@Suite struct GeneratorTests {
    /// The values for `count` seeds.
    private func values<Value>(_ generator: Generator<Value>, _ count: Int = 2_000) throws -> [Value] {
        try (0..<count).map { seed in
            var source = Source(seed: UInt64(seed))
            return try generator.value(from: &source)
        }
    }

    /// The value of the simplest choices.
    private func simplest<Value>(_ generator: Generator<Value>) throws -> Value {
        var source = Source(replaying: Tape([]))
        return try generator.value(from: &source)
    }

    @Test func `integers reach both ends of their range and of their type`() throws {
        #expect(Set(try values(.integer(in: Int8.min...Int8.max), 20_000)).count == 256)
        #expect(try values(.integer(in: Int.min...Int.max)).contains { $0 < 0 })
        // Wider than a single choice.
        let wide = Int128(1) << 64
        #expect(try values(.integer(in: 0...wide)).contains { $0 > wide / 2 })
        #expect(try values(.integer(in: -wide...wide)).allSatisfy { (-wide...wide).contains($0) })
        #expect(try values(Generator<UInt128>.integer).contains { $0 > .max / 2 && $0 < .max - 1 })
        #expect(try values(.integer(in: UInt64.max - 1...UInt64.max)).contains(.max))
        #expect(try values(.int(in: Int.min...Int.max)).contains { $0 > 0 })
        #expect(Set(try values(.integer(in: UInt8(3)...5))) == [3, 4, 5])
        let any = try values(Generator<Int32>.integer)
        #expect(Set(any).isSuperset(of: [.min, .max, 0, 1, -1]))
        #expect(try values(Generator<UInt64>.integer).contains(.max))
        #expect(try simplest(Generator<Int>.integer) == 0 && simplest(.integer(in: -7...7)) == -7)
    }

    @Test func `numbers stay in range, and include edge cases`() throws {
        let some = try values(Generator<Double>.number(in: -1.5...2.5))
        #expect(some.allSatisfy { (-1.5...2.5).contains($0) })
        #expect(some.contains { $0 < -1 } && some.contains { $0 > 2 })
        let most = Double.greatestFiniteMagnitude
        let wide = try values(.number(in: -most...most))
        #expect(wide.allSatisfy(\.isFinite) && wide.contains { $0 < 0 } && wide.contains { $0 > 0 })
        let any = try values(Generator<Float>.number())
        #expect(any.contains { $0.isNaN } && any.contains { $0.isInfinite })
        #expect(any.contains { $0 == 0 && $0.sign == .minus } && any.contains { $0 != $0.rounded() })
        #expect(try values(Generator<Double>.number(isFinite: true)).allSatisfy(\.isFinite))
        #expect(try simplest(Generator<Double>.number()) == 0)
    }

    @Test func `texts have characters of all kinds, and the simplest is empty`() throws {
        let texts = try values(Generator<String>.string(count: 0...30))
        #expect(texts.contains("") && texts.contains { $0.unicodeScalars.count > $0.count })
        #expect(texts.contains { $0.contains("\n") } && texts.contains { $0.contains("👩‍👩‍👧") })
        #expect(texts.allSatisfy { $0.unicodeScalars.count <= 30 * 5 })
        #expect(try simplest(Generator<String>.string()).isEmpty)
    }

    enum Color: CaseIterable { case red, green, blue }

    @Test func `collections, cases and durations`() throws {
        #expect(Set(try values(Generator<Color>.anyCase)) == Set(Color.allCases))
        #expect(try simplest(Generator<Color>.anyCase) == .red)
        let sets = try values(Generator<Set<Int>>.set(of: .int(in: 0...3), count: 0...12))
        #expect(sets.contains([]) && sets.contains([0, 1, 2, 3]))
        let entries = try values(
            Generator<[Int: Bool]>.dictionary(of: .int(in: 0...3), to: .bool, count: 1...4))
        #expect(entries.allSatisfy { (1...4).contains($0.count) } && entries.contains { $0[2] == true })
        let range = Duration.milliseconds(1)...(.milliseconds(2))
        let times = try values(.duration(in: range))
        #expect(times.allSatisfy { range.contains($0) } && Set(times).count > 1_000)
        let ages = Duration.zero...(.seconds(1_000_000_000_000))
        #expect(try values(.duration(in: ages)).contains { $0 > .seconds(900_000_000_000) })
    }
}
