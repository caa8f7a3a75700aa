import ArgumentParser
import BenchmarkCore
import BenchmarkHarness
import BenchmarkPeers
import Foundation

/// Lists the workloads and the peers that can be measured.
struct List: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show workloads and peers, or all details of some.")

    @Argument(
        help: "Workload identifiers, W14 for all W14-..., and peer names; default: an overview.")
    var names: [String] = []

    @Flag(help: "All details of all workloads and peers, for programs.")
    var json = false

    func run() throws {
        let chosen = try names.map(Self.about)
        if json {
            guard names.isEmpty else {
                throw BenchmarkError("'--json' lists everything, and takes no names.")
            }
            return try print(Catalogue().text())
        }
        print(names.isEmpty ? Self.overview : chosen.joined(separator: "\n\n"))
    }

    // MARK: Overview

    /// The number of columns that a terminal shows without wrapping.
    private static let columns = 100

    private static var overview: String {
        let families = Dictionary(grouping: workloads, by: \.family)
        let inOrder = families.keys.sorted { one, other in
            // W before R, as in the report, and 2 before 10.
            one.prefix(1) == other.prefix(1)
                ? one.compare(other, options: .numeric) == .orderedAscending : one > other
        }
        return
            (["Workloads"] + inOrder.map { line($0, families[$0] ?? []) }
            + ["Peers, and how many of the \(workloads.count) workloads each runs"] + visiblePeers.map(line)
            + ["'list W8' describes a workload, 'list tbb' a peer, 'list --json' everything."])
            .joined(separator: "\n")
    }

    /// A family: its first member's title, and as many of its members' suffixes as fit.
    private static func line(_ family: String, _ members: [Workload]) -> String {
        let title = members[0].title.prefix { $0 != "," }
        let start = "  \(padded(family, 4)) \(padded(String(title), 22))"
        let endings = members.map { String($0.id.dropFirst(family.count)) }.filter { !$0.isEmpty }
        var shown = endings.count
        func text() -> String {
            let rest = shown < endings.count ? ["and \(endings.count - shown) more"] : []
            return ([start] + endings.prefix(shown) + rest).joined(separator: " ")
        }
        while text().count > columns { shown -= 1 }
        return endings.isEmpty ? "  \(padded(family, 4)) \(title)" : text()
    }

    private static func line(_ peer: any Peer.Type) -> String {
        let start = "  \(padded(peer.name, 14)) "
        if peer.missing != nil { return start + "missing: see 'list \(peer.name)'" }
        let count = workloads.count { peer.notApplicable($0.id) == nil }
        return start + "\(padded("\(count)", 3)) \(peer.source)"
    }

    private static func padded(_ text: String, _ length: Int) -> String {
        text.padding(toLength: max(length, text.count), withPad: " ", startingAt: 0)
    }

    // MARK: Details

    private static func about(_ name: String) throws -> String {
        let some = workloads.filter { $0.id == name || $0.family == name }
        if !some.isEmpty { return some.map(about).joined(separator: "\n\n") }
        if let peer = visiblePeers.first(where: { $0.name == name }) { return about(peer) }
        throw BenchmarkError("There is no workload and no peer '\(name)'; 'list' shows all of them.")
    }

    private static func about(_ workload: Workload) -> String {
        func numbers(_ sizes: [Int]) -> String { sizes.map(String.init).joined(separator: ", ") }
        let head = """
            \(workload.id)  \(workload.title)
            \(wrapped(workload.sentence, indent: 2))
              In \(workload.unit); \(workload.sizes.name).
              quick \(numbers(workload.quick)); smoke \(numbers(workload.smoke)); thorough \(numbers(workload.thorough))
            """
        let peers = visiblePeers.map { peer in
            let reason = (peer.missing ?? peer.notApplicable(workload.id)).map { "n/a: \($0)" }
            return wrapped("\(padded(peer.name, 14)) \(reason ?? peer.form(workload.id) ?? "yes")", indent: 4)
        }
        return ([head] + peers).joined(separator: "\n")
    }

    private static func about(_ peer: any Peer.Type) -> String {
        let head = ["\(peer.name)  \(peer.version), \(peer.source)"]
        if let missing = peer.missing {
            return (head + [wrapped(missing, indent: 2)]).joined(separator: "\n")
        }
        let forms = grouped(peer.form).map { wrapped("\($0.ids): \($0.sentence)", indent: 2) }
        let reasons = grouped(peer.notApplicable).map { wrapped("n/a \($0.ids): \($0.sentence)", indent: 2) }
        return (head + forms + reasons).joined(separator: "\n")
    }

    /// Returns each sentence with the workloads to which it applies, in the order of the first of
    /// them.
    private static func grouped(_ say: (String) -> String?) -> [(ids: String, sentence: String)] {
        var sentences: [String] = []
        var ids: [String: [String]] = [:]
        for workload in workloads {
            guard let sentence = say(workload.id) else { continue }
            if ids[sentence] == nil { sentences.append(sentence) }
            ids[sentence, default: []].append(workload.id)
        }
        return sentences.map { (ids[$0, default: []].joined(separator: ", "), $0) }
    }

    /// The first line is indented by this many columns, the others by two more.
    private static func wrapped(_ text: String, indent: Int) -> String {
        var lines: [String] = []
        var line = String(repeating: " ", count: indent)
        var isEmpty = true
        for word in text.split(separator: " ", omittingEmptySubsequences: false) {
            if !isEmpty, line.count + 1 + word.count > columns {
                lines.append(line)
                line = String(repeating: " ", count: indent + 2)
                isEmpty = true
            }
            line += (isEmpty ? "" : " ") + word
            isEmpty = false
        }
        return (lines + [line]).joined(separator: "\n")
    }
}

/// Everything that `list` knows, as JSON, without the fields that are nil.
private struct Catalogue: Encodable {
    let workloads: [Entry]
    let peers: [PeerEntry]

    struct Entry: Encodable {
        let id: String
        let title: String
        let sentence: String
        let unit: String
        let metric: String
        let subject: String
        let sizes: Sizes
    }

    struct Sizes: Encodable {
        /// In words.
        let allowed: String
        let quick: [Int]
        let smoke: [Int]
        let thorough: [Int]
    }

    struct PeerEntry: Encodable {
        let name: String
        let version: String
        let source: String
        let missing: String?
        /// By workload.
        let forms: [String: String]
        /// By workload; it takes part in all others, unless it is missing.
        let notApplicable: [String: String]
    }

    init() {
        let all = BenchmarkCore.workloads
        workloads = all.map { workload in
            Entry(
                id: workload.id, title: workload.title, sentence: workload.sentence, unit: workload.unit,
                metric: workload.metric.rawValue, subject: workload.subject.rawValue,
                sizes: Sizes(
                    allowed: workload.sizes.name, quick: workload.quick, smoke: workload.smoke,
                    thorough: workload.thorough))
        }
        func sentences(_ say: (String) -> String?) -> [String: String] {
            Dictionary(
                uniqueKeysWithValues: all.compactMap { workload in say(workload.id).map { (workload.id, $0) }
                })
        }
        peers = visiblePeers.map { peer in
            PeerEntry(
                name: peer.name, version: peer.version, source: peer.source, missing: peer.missing,
                forms: sentences(peer.form), notApplicable: sentences(peer.notApplicable))
        }
    }

    func text() throws -> String {
        String(decoding: try readableJSON(self), as: UTF8.self)
    }
}
