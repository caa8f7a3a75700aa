import ArgumentParser
import BenchmarkHarness
import BenchmarkReport

/// Redraws the page of a run.
struct Report: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Redraw the page of a run.")

    @Argument(help: "The JSON of the run.") var file = RunFiles.latest
    @Option(help: "Where the page goes.") var html = RunFiles.page
    @Flag(help: "Print all rows, verdicts and costs.") var all = false

    func run() throws {
        let document = try RunDocument(contentsOf: file)
        try writeWhole(Page(document).render(), to: html)
        print(all ? FullReport(document).render() : TerminalReport(document).render(), terminator: "")
        print("\nPage: \(html)")
    }
}
