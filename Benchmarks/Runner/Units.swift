import ArgumentParser
import BenchmarkHarness
import Foundation

/// Lists the parts of a run, which may be measured separately: on other machines, at other times.
struct Units: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the units of a run, which can be measured separately, and merged by 'merge'.")

    @OptionGroup var selection: Selection

    @Flag(help: "As JSON: an array of the units, each with its name, workload and restart.")
    var json = false

    private struct Line: Encodable {
        let unit: String
        let workload: String
        let restart: Int
    }

    func run() throws {
        let units = try plan(selection.options()).units
        guard json else { return print(units.map(\.description).joined(separator: "\n")) }
        let lines = units.map { Line(unit: "\($0)", workload: $0.workload, restart: $0.restart) }
        print(String(decoding: try readableJSON(lines), as: UTF8.self))
    }
}
