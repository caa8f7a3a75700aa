// Helpers shared by the regression tests.

import CompositeOperations
import Dispatch
import PropertyTesting

extension DispatchQueue {
    /// Waits at a gate on a thread of this queue, so that the test's own thread is not blocked.
    func waits(for gate: Gate) async {
        await withCheckedContinuation { continuation in
            async {
                gate.wait()
                continuation.resume()
            }
        }
    }
}

/// Holds its work until `runAll()` is called.
final class HeldTarget: ExecutionTarget {
    private let held = Locked<[ExecutionWork]>([])
    var isCurrent: Bool { false }
    var count: Int { held.withLock { $0.count } }

    func submit(_ work: ExecutionWork) { held.withLock { $0.append(work) } }

    /// Runs the work held so far, on the calling thread.
    func runAll() {
        let all = held.withLock { held in
            defer { held = [] }
            return held
        }
        for work in all { work.run() }
    }
}
