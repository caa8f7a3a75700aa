// A command-line tool with Foundation's run loop: while the main thread waits for an operation, timers fire and ports
// are read. It also runs our operations in a Foundation queue, and a Foundation operation as one of our steps.

import CompositeOperations
import CompositeOperationsFoundation
import Foundation

RunLoopPump.install()

// A timer of the main run loop ends the operation for which the main thread waits.
syncOperation { sync in
    let timer = Timer(timeInterval: 0.001, repeats: false) { _ in
        // The timer may wait, too.
        let inner = operation { 6 * 7 }
        print("in a timer: \(try! inner.wait()!.get())")
        sync.finish()
    }
    RunLoop.main.add(timer, forMode: .default)
}

// The main queue is served as well, and an end from elsewhere is noticed.
syncOperation { sync in
    DispatchQueue.main.async {
        print("in the main queue")
        operation { sync.finish() }
    }
}

// In a queue of Foundation's: dependencies and completion blocks work.
let queue = OperationQueue()
let steps = COCascade<Void> { cascade in
    cascade.operation { print("first step") }
    cascade.operation { print("second step") }
}
let before = BlockOperation { print("before the cascade") }
let ours = FoundationOperation(steps)
let after = BlockOperation { print("after the cascade") }
ours.addDependency(before)
after.addDependency(ours)
queue.addOperations([after, ours, before], waitUntilFinished: true)
print("finished: \(ours.isFinished), cancelled: \(ours.isCancelled)")

// Conversely: an operation of Foundation's as a step.
let cascade = cascadeOperation { cascade in
    try cascade.add(COOperation(foundation: BlockOperation { print("Foundation's step") }, in: queue))
    cascade.operation { print("our step") }
}
print(cascade.wait().map { "\($0)" } ?? "not in time")
