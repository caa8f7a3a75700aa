import Foundation

/// What became of one mutant.
struct Outcome: Codable {
    enum Verdict: String, Codable {
        case killed
        case survived
        /// No C any more, or the same as another mutant: not counted.
        case invalid
    }

    var mutant: String
    var verdict: Verdict
    /// The scenarios that found it, with what each said.
    var kills: [Kill]
    var seconds: Double
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
    var limit: Int
    /// Whether all scenarios are run, or none after the first one that finds the mutant.
    var isWhole: Bool

    /// What the explorer is called with.
    func arguments(jobs: Int) -> [String] {
        [
            "--jobs", "\(jobs)", "--bound", "\(bound)", "--random", "\(random)", "--limit", "\(limit)",
            "--steps",
            "4000",
        ]
            + (isWhole ? [] : ["--first"])
    }
}

extension Laboratory {
    /// Runs the scenarios against the mutant, those of its own part first.
    func examine(_ mutant: Mutant, as number: Int, effort: Effort, seconds: Int) throws -> Outcome {
        let began = Date()
        func outcome(_ verdict: Outcome.Verdict, _ kills: [Kill] = []) -> Outcome {
            Outcome(
                mutant: mutant.id, verdict: verdict, kills: kills,
                seconds: (Date().timeIntervalSince(began) * 10).rounded() / 10)
        }
        defer { discard(number) }
        guard let program = try build(mutant, as: number) else { return outcome(.invalid) }
        let report = scratch.appending(path: "report-\(number).json")
        defer { try? FileManager.default.removeItem(at: report) }
        let names = try Self.scenarios(of: self, for: mutant.file)
        let result = try run(
            program.path, ["run"] + names + effort.arguments(jobs: 1) + ["--json", report.path],
            seconds: seconds)
        switch result.status {
        case 0: return outcome(.survived)
        case nil:
            return outcome(
                .killed, [Kill(scenario: "any", violation: "it did not end", schedule: "-", departures: 0)])
        case 1: return outcome(.killed, try Self.kills(in: report))
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

    /// The order in which they are run: what is near the file first, and what is short before what is long.
    private static func scenarios(of laboratory: Laboratory, for file: String) throws -> [String] {
        let near = [
            "deque.c": ["deque", "life-suspend", "join"], "inbox.c": ["inbox", "registry"],
            "registry.c": ["registry"],
            "completion.c": ["completion"], "capacity.c": ["capacity"], "idle.c": ["idle", "parking"],
            "worker.c": ["parking", "life"], "scheduler.c": ["life"], "submit.c": ["parking", "life"],
            "lane.c": ["lane"], "join.c": ["join"], "range.c": ["join-range"], "observer.c": ["life-observe"],
        ]
        let all = [
            "deque", "inbox", "registry", "completion", "capacity", "idle", "lane", "join", "life", "parking",
        ]
        let first = near[file] ?? []
        return first + all.filter { !first.contains($0) }
    }
}
