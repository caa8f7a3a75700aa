// Tests the promises about waits on the main thread. This is a program because the main thread of a test
// process is in use.

import CompositeOperations
import CompositeOperationsFoundation
import Foundation
import Synchronization

/// Items of the main queue: how many have run, and whether they ran one at a time and in order.
@MainActor final class Items {
    var count = 0
    var isRunning = false
    var areInOrder = true

    func run(_ number: Int) {
        areInOrder = areInOrder && !isRunning && number == count
        isRunning = true
        count += 1
        isRunning = false
    }
}

/// Items and ends arrive while the wait begins, and after: none is missed.
@MainActor func race(_ rounds: Int) {
    let items = Items()
    for number in 0..<rounds {
        syncOperation { sync in
            operation {
                DispatchQueue.main.async { items.run(number) }
                if number % 2 == 0 { sync.finish() } else { DispatchQueue.main.async { sync.finish() } }
            }
        }
    }
    syncOperation { sync in DispatchQueue.main.async { sync.finish() } }
    print("  \(items.count) of \(rounds) items, in order: \(items.areInOrder)")
}

/// The CPU time of this thread.
func timeOnProcessor() -> Duration {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
}

@MainActor func common() throws {
    race(2000)

    // Steps of a waited-for cascade on the main queue, and handlers there.
    let onMain = Mutex(0)
    let cascade = COCascade<Void>(options: OperationOptions(handlerTarget: DispatchQueue.main)) { cascade in
        for _ in 0..<100 {
            cascade.operation(on: DispatchQueue.main) {
                onMain.withLock { $0 += Thread.isMainThread ? 1 : 0 }
            }
        }
    }
    cascade.start()
    try cascade.wait()!.get()
    print("  \(onMain.withLock { $0 }) of 100 steps ran on the main thread")

    // A rerun that is requested elsewhere runs here.
    var runs = 0
    syncOperation { sync in
        runs += 1
        let isLast = runs == 50
        operation { if isLast { sync.finish() } else { sync.rerun() } }
    }
    print("  \(runs) runs of a block on the thread that waits")

    // The time of a wait expires; items are served meanwhile.
    let endless = operation { _ in }
    let served = Mutex(false)
    DispatchQueue.main.async { served.withLock { $0 = true } }
    print("  timed out: \(endless.wait(timeout: .milliseconds(5)) == nil), served: \(served.withLock { $0 })")

    // A wait sleeps, even after it has served an item.
    operation { DispatchQueue.main.async {} }
    let before = timeOnProcessor()
    endless.wait(timeout: .milliseconds(200))
    print("  slept: \(timeOnProcessor() - before < .milliseconds(10))")
    endless.cancel()

    // An end before the wait, and one caused by the wait's own items.
    let ended = operation {}
    DispatchQueue.main.async { ended.cancel() }
    print("  ended: \(ended.wait() != nil)")
    let sync = COSyncOperation<Void> { _ in }
    DispatchQueue.main.async { sync.cancel() }
    sync.start()
    print("  cancelled: \(sync.isCancelled)")

    // Inside an item nothing is served, and the wait ends all the same; items that arrived meanwhile are
    // served afterwards.
    syncOperation { outer in
        DispatchQueue.main.async {
            let isLate = Mutex(true)
            syncOperation { inner in
                DispatchQueue.main.async { isLate.withLock { $0 = false } }
                operation { inner.finish() }
            }
            print("  nothing was served in an item: \(isLate.withLock { $0 })")
            DispatchQueue.main.async { outer.finish() }
        }
    }
}

print("the main queue")
try common()

RunLoopPump.install()
print("the run loop")
try common()

/// Runs a closure on the main thread soon, from the run loop and not from the main queue.
@MainActor func soon(_ body: @escaping @Sendable () -> Void) {
    RunLoop.main.add(Timer(timeInterval: 0, repeats: false) { _ in body() }, forMode: .default)
}

// Waits in timers, eight deep, of which the outer ones end first.
var depth = 0
let syncs = (0..<8).map { _ in COSyncOperation<Void> { _ in } }
@MainActor func nest() {
    let number = depth
    depth += 1
    if depth < syncs.count {
        soon { MainActor.assumeIsolated { nest() } }
    } else {
        operation { for sync in syncs { sync.finish() } }
    }
    syncs[number].start()
}
nest()
print("  \(syncs.filter(\.isFinished).count) nested waits ended")

// A run loop inside a timer consumes the wake-up of the wait around it.
for _ in 0..<20 {
    syncOperation { sync in
        MainActor.assumeIsolated {
            soon {
                operation { sync.finish() }.wait()
                RunLoop.main.run(until: Date(timeIntervalSinceNow: 0.002))
            }
        }
    }
}
print("  20 waits ended around others' run loops")
