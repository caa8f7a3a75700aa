// Use from the top level of a program. Functions that are unambiguous there are called directly. The loops,
// which have a blocking and a suspending form, are called in a closure or in a function.

import Scheduling

let answer = try await Scheduler.shared.run { (1...8).reduce(6, +) }
print("a value: \(answer)")

let counter = try CompletionCounter()
for _ in 1...3 { Scheduler.submit(in: counter) { print("an operation") } }
try await counter.completed()

func squares() async throws -> [Int] {
    try await Scheduler.shared.map(1...5) { $0 * $0 }
}
print("a map: \(try await squares())")

struct Unlucky: Error { let number: Int }

try await withScheduler(Scheduler.Configuration(workers: 1)) { scheduler in
    print("a sum: \(try await scheduler.reduce(1...1_000, 0, +))")
    try await scheduler.forEach(1...6, chunksOf: 4) { chunk in print("a chunk: \(Array(chunk))") }
    do {
        try await scheduler.forEach(["thirteen", "one", "two", "three"]) { word in
            if word == "thirteen" { throw Unlucky(number: 13) }
            print("an element: \(word)")
        }
    } catch let error as Unlucky {
        print("an error: \(error.number); the rest was not begun")
    }
}
