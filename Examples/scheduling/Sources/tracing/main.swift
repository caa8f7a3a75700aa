// A request's identifier follows it to the workers, through operations, ranges and lanes.

import Scheduling

enum Trace {
    @TaskLocal static var request = "no request"
}

func log(_ what: String) { print("\(Trace.request): \(what)") }

func serve(on scheduler: Scheduler, log lane: SerialLane) throws {
    let counter = try CompletionCounter()
    // Each submission requests the context, so the operation on the lane, which logs, has its submitter's
    // context.
    try scheduler.submit(context: .inherited, in: counter) {
        do { try lane.submit(context: .inherited, in: counter) { log("resized") } } catch { log("\(error)") }
    }
    counter.wait()
    let count = try CompletionCounter()
    try scheduler.forEach(0..<100, context: .inherited) { _ in
        if Trace.request != "no request" { count.enter() }
    }
    log("\(count.outstanding) of 100 tiles know their request")
    // No context is requested here, so the scheduler's configuration decides; by default, it propagates none.
    try lane.submit(in: counter) { log("an operation without context") }
    counter.wait()
}

let lane = try SerialLane()
for number in 1...2 {
    try Trace.$request.withValue("request \(number)") { try serve(on: .shared, log: lane) }
}
