// Helpers shared by the tests of forEach, map and reduce.

import PropertyTesting
import Scheduling

/// A failure of an element.
struct Fault: Error, Equatable { let element: Int }

/// For blocking calls in asynchronous tests.
func blocking<Value>(_ body: () throws -> Value) rethrows -> Value { try body() }

/// A task whose loop is in the middle: its body has begun for an element, and goes on when the gate is open.
struct Middle {
    let started = Gate()
    let gate = Gate()

    /// For the loop's body.
    func stay() {
        started.open()
        gate.wait()
    }

    /// Cancels `task` while its body runs.
    func cancel<Value>(_ task: Task<Value, any Error>) {
        started.wait()
        task.cancel()
        gate.open()
    }
}
