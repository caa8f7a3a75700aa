// The demonstration of Examples/commands, whose source is part of this target through a symbolic link.

import Commands
import CompositeOperationsTestSupport
import Foundation
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing)
struct DemoTests {
    @Test(.promises("S10", "B11"), arguments: [true, false])
    func `S10: the demonstration prints the expected bytes`(isOnline: Bool) async throws {
        let log = Log<String>()
        await VehicleClient(isOnline: isOnline) { log.add($0) }.run()
        let name = isOnline ? "expected.txt" : "expected--fail.txt"
        let expected = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Examples/commands/Sources/vehicle-demo/\(name)")
        // The error is printed with its module's name, which in this target is the name of the test module.
        let printed = log.entries.map {
            $0.replacingOccurrences(of: "\(Self.module).", with: "ATCommandPattern.") + "\n"
        }
        #expect(try String(contentsOf: expected, encoding: .utf8) == printed.joined())
    }

    private static let module = String(reflecting: VehicleAPIError.self).split(separator: ".")[0]
}
