import Foundation

/// A hand-written mutant, which no operator produces.
///
///     count after push
///     submit.c
///     - the text as it is, which occurs once
///     + the text as it becomes
struct HandWritten {
    let name: String
    let file: String
    let old: String
    let new: String

    /// Reads entries that are separated by blank lines; `#` begins a comment.
    static func read(_ path: String) throws -> [HandWritten] {
        try entries(of: path).map { lines in
            guard lines.count >= 4 else {
                throw Failure("\(path): '\(lines[0])' is no mutant: \(lines.count) lines.")
            }
            let parts = ["- ", "+ "].map { mark in
                lines.dropFirst(2).filter { $0.hasPrefix(mark) }.map { $0.dropFirst(2) }.joined(
                    separator: "\n")
            }
            return HandWritten(name: lines[0], file: lines[1], old: parts[0], new: parts[1])
        }
    }

    func mutant(of source: CSource) throws -> Mutant {
        let text = source.string(source.text.indices)
        let places = text.ranges(of: old)
        guard places.count == 1 else {
            throw Failure(
                "the mutant '\(name)' replaces what occurs \(places.count) times in \(file), not once.")
        }
        return Mutant(
            id: "\(file): by hand: \(name)", file: file, operation: "by hand",
            text: text.replacingCharacters(in: places[0], with: new))
    }
}

/// Mutants whose change no scenario could see, and why: one or more, and a reason for all of them.
///
///     idle.c:unpark: relaxed: csched_load(parker, seq_cst)
///     because ...
struct Equivalents {
    private(set) var reasons: [String: String] = [:]

    init(_ path: String) throws {
        for lines in try entries(of: path) {
            guard let reason = lines.firstIndex(where: { $0.hasPrefix("because ") }), reason > 0 else {
                throw Failure("\(path): '\(lines[0])' has no reason.")
            }
            for id in lines[..<reason] {
                guard reasons[id] == nil else { throw Failure("\(path): '\(id)' stands there twice.") }
                reasons[id] = lines[reason...].joined(separator: " ")
            }
        }
    }
}

/// Debts: mutants that no scenario finds yet although they are not equivalent, and scenarios (`scenario: name`) that find
/// no mutant yet. Their number is printed, and they are removed from the list once they are paid.
struct Debts {
    private(set) var mutants: Set<String> = []
    private(set) var scenarios: Set<String> = []

    init(_ path: String) throws {
        for line in try entries(of: path).joined() {
            if line.hasPrefix("scenario: ") {
                scenarios.insert(String(line.dropFirst("scenario: ".count)))
            } else {
                mutants.insert(line)
            }
        }
    }
}

/// How mutants were found before, which is tried first: a schedule takes a millisecond, a search seconds.
///
///     inbox-growth t1@14,r1@20 inbox.c:publish: relaxed: csched_store(...)
///
/// The list is not trusted: if a schedule no longer finds its mutant, the mutant is searched for again. A mutant is
/// listed more than once if that gives each scenario a mutant that it finds.
struct KnownKills {
    private(set) var kills: [String: [Kill]] = [:]

    init(_ path: String) throws {
        let text = try String(contentsOfFile: path, encoding: .utf8)
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            let words = line.split(separator: " ", maxSplits: 2).map(String.init)
            guard words.count == 3 else { throw Failure("\(path): '\(line)' is no kill.") }
            kills[words[2], default: []].append(
                Kill(scenario: words[0], violation: "", schedule: words[1], departures: 0))
        }
    }

    /// Keeps kills by the same scenario as before; otherwise prefers the schedule with the fewest departures, and a
    /// scenario that has no mutant yet. Drops mutants that no longer exist. `onlyAdds`: not all scenarios were run.
    mutating func update(with outcomes: [Outcome], of everything: [Mutant], onlyAdds: Bool) {
        for outcome in outcomes where !outcome.kills.isEmpty && !onlyAdds {
            let before = Set((kills[outcome.mutant] ?? []).map(\.scenario))
            let again = outcome.kills.filter { before.contains($0.scenario) }
            kills[outcome.mutant] = again.isEmpty ? [Self.shortest(of: outcome.kills)] : again
        }
        let ids = Set(everything.map(\.id))
        kills = kills.filter { ids.contains($0.key) }
        for (scenario, found) in Dictionary(grouping: outcomes.flatMap(\.pairs), by: \.kill.scenario)
        where !scenarios.contains(scenario) {
            let first = found.min { $0.kill.departures < $1.kill.departures }!
            kills[first.mutant, default: []].append(first.kill)
        }
    }

    private var scenarios: Set<String> { Set(kills.values.joined().map(\.scenario)) }

    private static func shortest(of kills: [Kill]) -> Kill { kills.min { $0.departures < $1.departures }! }

    var text: String {
        "# How each mutant was found: scenario, schedule, mutant. Written by `mutate run --keep`.\n"
            + kills.sorted { $0.key < $1.key }
            .flatMap { id, kills in kills.map { "\($0.scenario) \($0.schedule) \(id)\n" } }.joined()
    }
}

private func entries(of path: String) throws -> [[String]] {
    let text = try String(contentsOfFile: path, encoding: .utf8)
    return text.split(separator: "\n", omittingEmptySubsequences: false)
        .filter { !$0.hasPrefix("#") }
        .split(whereSeparator: \.isEmpty)
        .map { $0.map(String.init) }
}

struct Failure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
