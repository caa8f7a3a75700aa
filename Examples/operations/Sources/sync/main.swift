// A command-line tool without `await`: sync operations make asynchronous work sequential. While the main thread
// waits, it serves the main queue; so work may return to the main thread in the middle.

import CompositeOperations
import Dispatch

/// A third-party asynchronous interface, which answers on the main queue.
func measure(_ text: String, then answer: @escaping @Sendable @MainActor (Int) -> Void) {
    operation { DispatchQueue.main.async { answer(text.count) } }
}

var total = 0
for word in ["sync", "operations", "wait"] {
    let length = syncOperation(returning: Int.self) { sync in
        measure(word) { sync.finish($0) }
    }
    total += try length.result!.get()
    print("\(word): \(try length.result!.get())")
}
print("total: \(total)")

// The block runs on this thread, each time, so that it may change local variables.
var attempts = 0
let stubborn = syncOperation { sync in
    attempts += 1
    if attempts < 3 { sync.rerun() } else { sync.finish() }
}
print("finished: \(stubborn.isFinished), after \(attempts) attempts")

// An asynchronous operation, waited for: jobs of the main actor run meanwhile.
let sum = operation {
    var sum = 0
    for number in 1...4 { sum += await MainActor.run { number * number } }
    return sum
}
print("from the main actor: \(try sum.wait()!.get())")

// This operation is never finished: its time expires.
let forgotten = syncOperation(timeout: .milliseconds(10)) { _ in }
if case .cancelled(let reason)? = forgotten.result { print("forgotten: \(reason)") }

// The main queue serves one item at a time. A wait inside an item serves nothing, and the sink is notified before
// the wait begins.
syncOperation { outer in
    DispatchQueue.main.async {
        let inner = syncOperation { inner in
            Diagnostics.onReport { diagnostic in
                print("diagnostic: \(diagnostic.message)")
                operation { inner.finish() }
            }
        }
        Diagnostics.onReport(nil)
        print("inside an item: \(inner.isFinished)")
        outer.finish()
    }
}
