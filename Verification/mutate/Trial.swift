import Foundation

/// The outcome for one mutant.
struct Outcome: Codable {
    enum Verdict: String, Codable {
        case killed
        case survived
        /// No longer valid C, or the same as another mutant: not counted.
        case invalid
    }

    var mutant: String
    var verdict: Verdict
    /// The scenarios that found it, with the message of each.
    var kills: [Kill]
    var seconds: Double

    var pairs: [(mutant: String, kill: Kill)] { kills.map { (mutant, $0) } }
}

struct Kill: Codable {
    var scenario: String
    var violation: String
    var schedule: String
    var departures: Int
}

/// How hard to try.
struct Effort: Codable, Equatable {
    var bound: Int
    var random: Int
    /// The maximum number of schedules per scenario; 0 for no limit.
    var limit: Int
    /// Whether all scenarios are run, or none after the first that finds the mutant.
    var isWhole: Bool
    /// Whether only the scenarios of the mutant's own part are run.
    var isNear = false
    /// Whether stopping threads for ever is skipped, which keeps a round short.
    var isShort = false
    /// The only scenarios to run, each completely; nil: all.
    var scenarios: [String]?

    /// Returns the arguments of the explorer.
    func arguments(jobs: Int) -> [String] {
        [
            "--jobs", "\(jobs)", "--bound", "\(bound)", "--random", "\(random)", "--limit", "\(limit)",
        ]
            + (isWhole ? [] : ["--first"]) + (isShort ? ["--no-frozen"] : [])
    }

    /// For the scenario that found a mutant before, if its schedule no longer does because steps have moved.
    static let again = Effort(bound: 2, random: 3000, limit: 20_000, isWhole: true)

    /// A brief try of every scenario before the long one: it finds most mutants.
    var rounds: [Effort] {
        var short = self
        short.limit = 150
        short.random = min(random, 20)
        short.isShort = true
        return isWhole || (1...short.limit).contains(limit) ? [self] : [short, self]
    }
}

extension Laboratory {
    /// Runs what found the mutant before: the schedules, then their scenarios. If all of those hold, runs all
    /// scenarios, first those of the mutant's own part.
    func examine(_ mutant: Mutant, as number: Int, known: [Kill], effort: Effort, seconds: Int) throws
        -> Outcome
    {
        let began = Date()
        func outcome(_ verdict: Outcome.Verdict, _ kills: [Kill] = []) -> Outcome {
            Outcome(
                mutant: mutant.id, verdict: verdict, kills: kills,
                seconds: (Date().timeIntervalSince(began) * 10).rounded() / 10)
        }
        defer { discard(number) }
        guard let program = try build(mutant, as: number, optimized: effort.isWhole || known.isEmpty)
        else { return outcome(.invalid) }
        let report = scratch.appending(path: "report-\(number).json")
        func search(_ names: [String], _ effort: Effort) throws -> [Kill] {
            try self.search(program, names, effort, report: report, seconds: seconds, for: mutant)
        }
        if !effort.isWhole {
            let kills = try known.flatMap { each in
                try replay(each, in: program).map { [$0] } ?? search(["--exact", each.scenario], .again)
            }
            if !kills.isEmpty { return outcome(.killed, kills) }
        }
        let names =
            effort.scenarios.map { ["--exact"] + $0 }
            ?? Self.scenarios(for: mutant.file, onlyNear: effort.isNear)
        for round in effort.rounds {
            let kills = try search(names, round)
            if !kills.isEmpty { return outcome(.killed, kills) }
        }
        return outcome(.survived)
    }

    private func replay(_ known: Kill, in program: URL) throws -> Kill? {
        let result = try run(program.path, ["replay", known.scenario, known.schedule], seconds: 20)
        guard result.status == 1, let last = result.output.split(separator: "\n").last else { return nil }
        return Kill(
            scenario: known.scenario, violation: String(last.drop { $0 != ":" }.dropFirst(2)),
            schedule: known.schedule,
            departures: known.schedule == "-" ? 0 : known.schedule.split(separator: ",").count)
    }

    private func search(
        _ program: URL, _ names: [String], _ effort: Effort, report: URL, seconds: Int, for mutant: Mutant
    ) throws -> [Kill] {
        defer { try? FileManager.default.removeItem(at: report) }
        let result = try run(
            program.path, ["run"] + names + effort.arguments(jobs: 1) + ["--json", report.path],
            seconds: seconds)
        switch result.status {
        case 0: return []
        case 1:
            guard FileManager.default.fileExists(atPath: report.path) else {
                throw Failure("explore wrote no report for \(mutant.id):\n\(result.output)")
            }
            return try Self.kills(in: report)
        case nil:
            throw Failure("\(mutant.id): the search took more than \(seconds) s.")
        case .some(let status):
            throw Failure("explore ended with \(status) for \(mutant.id):\n\(result.output)")
        }
    }

    private static func kills(in report: URL) throws -> [Kill] {
        struct Search: Decodable {
            var violation: String?
            var schedule: String?
            var departures: Int?
            var signal: Int?
        }
        struct Report: Decodable {
            var scenario: String
            var holds: Bool
            var exhaustive, random, frozen: Search?
        }
        return try JSONDecoder().decode([Report].self, from: Data(contentsOf: report)).compactMap { each in
            guard !each.holds else { return nil }
            let search = [each.exhaustive, each.random, each.frozen].compactMap { $0 }
                .first { $0.violation != nil || $0.signal != nil }
            return Kill(
                scenario: each.scenario,
                violation: search?.violation ?? "the process was ended by signal \(search?.signal ?? 0)",
                schedule: search?.schedule ?? "-", departures: search?.departures ?? 0)
        }
    }

    /// The order in which the scenarios are run: those for the file first, and short ones before long ones.
    private static func scenarios(for file: String, onlyNear: Bool) -> [String] {
        let near = [
            "capacity.c": ["capacity"],
            "children.c": ["children"],
            "completion.c": [
                "completion", "life-lend", "life-wait", "life-drain_nested", "block", "children",
            ],
            "deque.c": ["deque"],
            "idle.c": ["call-statistics", "idle", "parking", "life"],
            "inbox.c": ["inbox", "registry", "parking"],
            "join.c": ["join"],
            "lane.c": ["lane", "priority"],
            "observer.c": ["life-observe"],
            "pace.c": ["idle-pace", "idle-slow", "parking-crowd", "parking-slow"],
            "priority.c": ["priority"],
            "range.c": ["call-ranges", "call-cut_short", "join-range"],
            "registry.c": ["registry", "life-two", "life-churn"],
            "ring.c": ["ring"],
            "epochs.c": ["epochs"],
            "scheduler.c": ["call", "life"],
            "submit.c": ["call", "parking", "life", "block", "priority"],
            "timer.c": ["timer"],
            "watch.c": ["block", "children-in_hand"],
            "wheel.c": ["timer"],
            "worker.c": ["call", "children", "join", "block", "parking", "life", "priority"],
        ]
        let all = [
            "call", "deque", "inbox", "registry", "completion", "capacity", "idle", "lane", "join", "life",
            "parking", "block", "priority", "timer", "children", "ring", "epochs",
        ]
        let first = near[file] ?? []
        return onlyNear ? first : first + all.filter { !first.contains($0) }
    }
}
