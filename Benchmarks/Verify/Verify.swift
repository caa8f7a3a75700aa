import ArgumentParser
import ConformanceSubjects
import ConformanceTesting
import Foundation
import PropertyTesting

/// `swift run verify`: checks whether the laws hold for schedulers.
@main
struct Verify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Checks whether the laws of scheduling hold for schedulers.",
        discussion: """
            A law is first checked with its saboteur, which breaks the law: if the check does not detect that, the law \
            says nothing about that scheduler. Then the scheduler itself is checked, under many loads; a violation is \
            made small, and drawn.
            """,
        subcommands: [List.self, Run.self, Replay.self, Soak.self], defaultSubcommand: Run.self)
}

/// The laws and the subjects of a command.
struct Choice: ParsableArguments {
    @Option(help: "A subject: its name, 'ours', 'peers', or 'all'. May be repeated.")
    var subject: [String] = ["ours"]
    @Option(help: "A law, by its id. May be repeated; default: all.")
    var law: [String] = []

    func subjects() throws -> [Subject] {
        try subject.flatMap { name -> [Subject] in
            switch name {
            case "ours": return Subject.ours
            case "peers": return Subject.peers + Subject.others
            case "all": return Subject.sound
            default:
                guard let one = Subject.known.first(where: { $0.name == name }) else {
                    throw ValidationError(
                        "There is no subject '\(name)'. The subjects are: \(Subject.known.map(\.name).joined(separator: "; "))."
                    )
                }
                return [one]
            }
        }
    }

    func laws() throws -> [Law] {
        try law.isEmpty
            ? Law.all
            : law.map { id in
                guard let one = Law.all.first(where: { $0.id == id.uppercased() }) else {
                    throw ValidationError("There is no law '\(id)'. 'verify list' shows all.")
                }
                return one
            }
    }
}

extension Subject {
    /// All subjects that this program knows, including a pool with a fault.
    static var known: [Subject] { sound + [.brokenPool] }
    /// All subjects without an intentional fault.
    static var sound: [Subject] { ours + peers + others }
}

struct List: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows the laws, their saboteurs, and the subjects.")

    func run() {
        for law in Law.all {
            print("\(law.id.padding(toLength: 4, withPad: " ", startingAt: 0)) \(law.sentence)")
            let needs =
                law.needs.isEmpty ? "" : "needs \(law.needs.map(\.description).joined(separator: ", ")); "
            print("     \(needs)its saboteur \(law.saboteur.name)")
        }
        print("\nSubjects: \(Subject.known.map(\.name).joined(separator: "; "))")
    }
}

struct Run: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Checks the laws, and prints which hold.")

    @OptionGroup var choice: Choice
    @Option(help: "The seed of the loads.") var seed: UInt64 = 1
    @Option(help: "The time limit in total, such as 300s or 5m.") var budget: Time = Time(seconds: 60)
    @Option(help: "The part of the pairs of law and subject to check, such as 1/4.") var shard: Shard = Shard(
        1, of: 1)
    @Option(help: "A file for the results as JSON.") var json: String?
    @Option(help: "A file for the results as a page.") var page: String?

    func run() async throws {
        let matrix = await Matrix.ask(
            try choice.laws(), of: try choice.subjects(), seed: seed, budget: budget, shard: shard)
        print(matrix.summary)
        if let json { try matrix.json().write(to: URL(filePath: json)) }
        if let page {
            try matrix.page().write(to: URL(filePath: page), atomically: true, encoding: .utf8)
            print("Page: \(page)")
        }
        if !matrix.isGood { throw ExitCode(1) }
    }
}

struct Replay: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Runs one case again, as often as requested.")

    @Option(help: "The subject.") var subject: String
    @Option(help: "The law.") var law: String
    @Argument(help: "The choices, as printed by a run.") var tape: String
    @Option(help: "How often.") var times = 100

    func run() async throws {
        var choice = Choice()
        choice.subject = [subject]
        choice.law = [law]
        guard let tape = Tape(tape) else { throw ValidationError("'\(tape)' is not a list of choices.") }
        guard try choice.subjects().count == 1 else { throw ValidationError("A replay needs one subject.") }
        let (law, subject) = (try choice.laws()[0], try choice.subjects()[0])
        var (failures, options) = (0, LawOptions(replay: tape))
        for _ in 0..<max(1, times) {
            switch await check(law, of: subject, options: options) {
            case .held: break
            case .violated(let found):
                if failures == 0 { print(found) }
                options.isDrawn = false
                failures += 1
            case let other: throw ValidationError("\(law.id) of \(subject.name): \(other).")
            }
        }
        print("\(law.id) of \(subject.name): violated \(failures) of \(max(1, times)) times.")
        if failures > 0 { throw ExitCode(1) }
    }
}

struct Soak: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Checks repeatedly, with new seeds, until a law is violated.")

    @OptionGroup var choice: Choice
    @Option(help: "The first seed.") var seed = UInt64.random(in: 1...1_000_000)
    @Option(help: "The time limit of each round.") var round: Time = Time(seconds: 60)
    @Option(help: "The time limit in total; default: until a law is violated.") var budget: Time?

    func run() async throws {
        let end = budget.map { ContinuousClock.now + $0.duration }
        var (seed, cases) = (seed, 0)
        while end.map({ ContinuousClock.now < $0 }) ?? true {
            let matrix = await Matrix.ask(
                try choice.laws(), of: try choice.subjects(), seed: seed, budget: round,
                shard: Shard(1, of: 1))
            cases += matrix.cases
            print("seed \(seed): \(matrix.counts); \(cases) cases so far")
            if !matrix.isGood {
                print(matrix.summary)
                throw ExitCode(1)
            }
            seed += 1
        }
    }
}

/// A number of seconds, as in 300s, 5m or 2h.
struct Time: ExpressibleByArgument, Sendable, CustomStringConvertible {
    let seconds: Double
    var duration: Duration { .seconds(seconds) }
    var description: String { "\(seconds.formatted())s" }

    init(seconds: Double) { self.seconds = seconds }

    init?(argument: String) {
        let units: [Character: Double] = ["s": 1, "m": 60, "h": 3_600]
        let unit = argument.last.flatMap { units[$0] }
        guard let value = Double(unit == nil ? argument : String(argument.dropLast())), value > 0, value < 1e7
        else {
            return nil
        }
        seconds = value * (unit ?? 1)
    }
}

/// A part of the pairs of law and subject: a number, and how many parts there are.
struct Shard: ExpressibleByArgument, Sendable, CustomStringConvertible {
    let number: Int
    let count: Int
    var description: String { "\(number)/\(count)" }

    init(_ number: Int, of count: Int) {
        self.number = number
        self.count = count
    }

    init?(argument: String) {
        let parts = argument.split(separator: "/").map { Int($0) }
        guard parts.count == 2, let number = parts[0], let count = parts[1],
            count > 0, (1...count).contains(number)
        else {
            return nil
        }
        self.init(number, of: count)
    }
}
