// The explorer's own tests: it reaches what the memory model allows, and nothing that the model forbids. The two
// kinds of tests validate each other: a model that is too strong fails the first, a model that is too weak the
// second.

import CExplorer
import ExplorerLitmus
import Testing

private struct Litmus: CustomTestStringConvertible, Sendable {
    nonisolated(unsafe) let test: litmus_test
    var testDescription: String { String(cString: test.program.name) }

    static let all = (0..<litmus_count).map { Litmus(test: litmus_test_at($0)!.pointee) }
}

/// Deep enough for every schedule of these programs.
func deepOptions() -> explorer_options {
    var options = explorer_options_default()
    options.bound = 9
    options.stale_bound = 9
    return options
}

extension explorer_result {
    var text: String {
        withUnsafeBytes(of: message) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}

/// One test at a time: the explorer runs one program in a process.
@Suite(.serialized) enum ExplorerTests {}

extension ExplorerTests {
    @Suite struct LitmusTests {
        @Test(arguments: Litmus.all)
        fileprivate func `a weak outcome is reached exactly when the model allows it`(litmus: Litmus) {
            var program = litmus.test.program
            var options = deepOptions()
            let result = explorer_run(&program, &options)
            #expect(result.failed == litmus.test.reachable)
            #expect(result.failed || result.complete)
            if result.failed { #expect(result.text == "the weak outcome") }
        }

        /// Only load buffering is out of reach, as documented.
        @Test func `only load buffering is allowed yet unreached`() {
            let missed = Litmus.all.filter { $0.test.allowed && !$0.test.reachable }
            #expect(missed.map(\.testDescription) == ["lb"])
            #expect(!Litmus.all.contains { $0.test.reachable && !$0.test.allowed })
        }

        @Test(arguments: Litmus.all.filter(\.test.reachable))
        fileprivate func `a schedule shrinks, is written, read and run again`(litmus: Litmus) throws {
            var program = litmus.test.program
            var options = deepOptions()
            options.strategy = EXPLORER_PCT
            options.executions_most = 10_000
            var found = explorer_run(&program, &options)
            try #require(found.failed)
            var short = explorer_shrink(&program, &options, &found)
            #expect(short.count <= 3)
            var text = [CChar](repeating: 0, count: 200)
            #expect(explorer_schedule_write(&short, &text, text.count) < text.count)
            options.strategy = EXPLORER_REPLAY
            options.executions_most = 1
            try #require(explorer_schedule_read(&options.schedule, text))
            let again = explorer_run(&program, &options)
            #expect(again.failed)
            #expect(again.text == "the weak outcome")
        }

        @Test(arguments: Litmus.all.filter(\.test.reachable))
        fileprivate func `sequentially consistent memory has no weak outcome`(litmus: Litmus) {
            var program = litmus.test.program
            var options = deepOptions()
            options.sequentially_consistent = true
            let result = explorer_run(&program, &options)
            #expect(!result.failed)
            #expect(result.complete)
        }

        @Test(arguments: ["", "t", "x1@2", "t1@", "t1@2,", "t999@1", "t1@2;r1@3"])
        func `an invalid schedule is refused`(text: String) {
            var schedule = explorer_schedule()
            #expect(!explorer_schedule_read(&schedule, text))
        }
    }
}
