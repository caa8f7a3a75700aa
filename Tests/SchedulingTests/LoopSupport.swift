// Helpers shared by the tests of forEach, map and reduce.

import PropertyTesting
import Scheduling

/// A failure of an element.
struct Fault: Error, Equatable { let element: Int }

/// Allows blocking calls in asynchronous tests.
func blocking<Value>(_ body: () throws -> Value) rethrows -> Value { try body() }

/// Holds a loop halfway: the body has begun for an element, and continues when the gate is open.
struct Middle {
    let started = Gate()
    let gate = Gate()

    /// Called by the loop's body.
    func stay() {
        started.open()
        gate.wait()
    }

    /// Cancels `task` while the loop's body runs.
    func cancel<Value>(_ task: Task<Value, any Error>) {
        started.wait()
        task.cancel()
        gate.open()
    }
}
