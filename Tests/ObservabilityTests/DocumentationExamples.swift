// The examples of Observability.docc: Scripts/documentation looks for every block of Swift in an article here. To change one is to
// change the other.

import CompositeOperations
import CompositeOperationsTestSupport
import Foundation
import Observability
import PropertyTestingSupport
import Scheduling
import Testing

extension DumpTests {
    @Test func `the example of the article shows a forgotten finish`() async {
        // Observability.md
        Inspection.start()
        var options = OperationOptions()
        options.name = "load"
        let load = operation(options: options) { attempt in
            // Forgets to finish.
        }
        print(Inspection.dump())
        // end of the example
        #expect(
            await eventually {
                Inspection.dump(limit: 100_000).problems.contains {
                    $0.kind == .forgottenFinish && $0.ids == ["\(load.id)"]
                }
            })
        Inspection.stop()
        load.finish()
    }
}

extension OneRecorder {
    @Suite struct DocumentationExamples {
        private func serve() throws { try Scheduler.shared.forEach(0..<10) { _ in } }
        private func decode(_ input: Int) -> Int { input + 1 }
        private func log(_ text: String) { print(text) }

        @Test func `a trace, with spans of the program`() throws {
            let path = NSTemporaryDirectory() + "/trace-\(UUID().uuidString).json"
            defer { try? FileManager.default.removeItem(atPath: path) }
            let (request, input) = (7 as UInt64, 1)
            // Observability.md
            Recorder.start()
            try serve()
            Recorder.stop()
            let trace = Recorder.recording().chromeTrace()
            try trace.write(toFile: path, atomically: true, encoding: .utf8)
            // and
            let user = Recorder.span("decode", number: request) { decode(input) }
            Recorder.mark("cache is full")
            // end of the example
            #expect(user == 2)
            let written = try JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: path)))
            #expect(written as? [String: Any] != nil)
        }

        @Test func `a watch for stalls`() {
            // Observability.md
            let watch = StallWatch(body: .seconds(1), wait: .seconds(1)) { stall in log("\(stall)") }
            // end of the example
            watch.stop()
        }
    }
}
