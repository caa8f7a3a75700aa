// Serves the requests of `benchmarks ab`, one line of JSON each, until its input ends; docs/benchmark-protocol.md.

import Foundation

struct Request: Decodable {
    var list: Bool?
    var workload: String?
    var n: Int?
}

/// The work of each workload; its result depends on all of it, so that the compiler cannot omit anything.
let workloads: [String: (Int) -> UInt64] = [
    "mix": { n in mix(rounds: n * 1_000) },
    "mix-again": { n in mix(rounds: n * 1_000) },
]

func mix(rounds: Int) -> UInt64 {
    var state: UInt64 = 1
    for _ in 0..<rounds { state = (state ^ (state >> 29)) &* 0xBF58_476D_1CE4_E5B9 &+ 1 }
    return state
}

@MainActor func answer(_ request: Request?) -> String {
    if request?.list == true {
        let names = workloads.keys.sorted().map { #"{"workload":"\#($0)","n":[2000]}"# }
        return #"{"protocol":1,"workloads":[\#(names.joined(separator: ","))]}"#
    }
    guard let n = request?.n, let work = workloads[request?.workload ?? ""] else {
        return #"{"error":"There is no such workload."}"#
    }
    var sum: UInt64 = 0
    let time = ContinuousClock().measure { sum = work(n) }
    return
        #"{"sample":{"nanoseconds":\#(Int(time / .nanoseconds(1))),"operations":\#(n),"checksum":\#(sum)}}"#
}

while let line = readLine() {
    print(answer(try? JSONDecoder().decode(Request.self, from: Data(line.utf8))))
    fflush(nil)  // the other side waits for it
}
