import ArgumentParser
import BenchmarkHarness
import BenchmarkReport
import Foundation

/// Combines the parts of a run.
struct MergeParts: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "merge",
        abstract: "Merge the parts of a run: of one host, or the medians of many.")

    @Argument(help: "The JSON files of the parts.") var files: [String]

    @Option(help: "Where the result goes: a run if all parts are of one host, else the runs of the hosts.")
    var json = ".benchmarks/merged.json"

    @Option(help: "Where the page goes, if all parts are of one host.")
    var html = ".benchmarks/merged.html"

    @Flag(help: "Do not fail if units are missing.")
    var partial = false

    func run() throws {
        var merge = try Merge(files.map { (name: $0, document: try RunDocument(contentsOf: $0)) })
        guard let options = merge.hosts.first?.options else { return }
        let lacking = merge.lacking(of: try plan(options).units)
        if !lacking.isEmpty && !partial {
            throw BenchmarkError(lacking.joined(separator: "\n"), kind: .notMeasured)
        }
        merge.mark(isPartial: !lacking.isEmpty)
        if merge.hosts.count == 1, let host = merge.hosts.first {
            try host.write(to: json)
            try writeWhole(Page(host).render(), to: html)
            print(TerminalReport(host).render(), terminator: "")
            for remark in merge.remarks + lacking { print(remark) }
            print("\nRaw values: \(json)\nPage:       \(html)")
        } else {
            try writeWhole(readableJSON(merge), to: json)
            print(merge.render(), terminator: "")
            for sentence in lacking { print(sentence) }
            print("\nRaw values: \(json)")
        }
    }
}
