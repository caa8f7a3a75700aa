// Every kind of defect that the explorer looks for is found in a program that has it.

import CExplorer
import ExplorerLitmus
import Testing

private struct Defect: CustomTestStringConvertible, Sendable {
    // A constant in C: its functions and texts never change.
    nonisolated(unsafe) let test: defect_test
    var testDescription: String { String(cString: test.program.name) }

    static let all = (0..<defect_count).map { Defect(test: defect_test_at($0)!.pointee) }

    func run(_ options: explorer_options) -> explorer_result {
        var (program, options) = (test.program, options)
        options.steps_most = 200
        return test.frozen ? explorer_run_frozen(&program, &options) : explorer_run(&program, &options)
    }
}

extension ExplorerTests {
    @Suite struct DefectTests {
        @Test(arguments: Defect.all)
        fileprivate func `a defect is found, and its schedule is short`(defect: Defect) {
            var result = defect.run(deepOptions())
            #expect(result.failed)
            #expect(result.text.hasPrefix(String(cString: defect.test.violation)), "\(result.text)")
            var (program, options) = (defect.test.program, deepOptions())
            options.steps_most = 200
            let short = explorer_shrink(&program, &options, &result)
            #expect(short.count <= 2)
            #expect((short.frozen != 0) == defect.test.frozen)
        }

        @Test func `a mutex is no defect while its holder goes on`() throws {
            let mutex = try #require(Defect.all.first { $0.test.frozen })
            var (program, options) = (mutex.test.program, deepOptions())
            let result = explorer_run(&program, &options)
            #expect(!result.failed, "\(result.text)")
            #expect(result.complete)
        }
    }
}
