// The examples of Inspection.docc: Scripts/documentation looks for every block of Swift in an article here. To change one is to
// change the other.

import CompositeOperations
import CompositeOperationsTestSupport
import Observability
import PropertyTestingSupport
import Testing

extension DumpTests {
    @Test func `the example of the article shows a forgotten finish`() async {
        // Inspection.md
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
