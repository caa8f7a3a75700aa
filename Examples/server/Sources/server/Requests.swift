// Requests.swift - the work of a request, as an operation of the scheduler.

import CompositeOperations
import Glibc
import Scheduling

struct Requests: Sendable {
    private let scheduler: Scheduler
    private let prints: Bool

    init(_ scheduler: Scheduler, prints: Bool) {
        self.scheduler = scheduler
        self.prints = prints
    }

    /// The sum of the squares of 1 ... count.
    func sum(to count: Int, number: String?) async throws -> String {
        if prints, let number { print("began \(number)", flush: true) }
        var options = OperationOptions()
        options.name = "sum"
        let sum = try await operation(on: scheduler, options: options) {
            (0...max(0, min(count, 10_000_000))).reduce(0) { $0 &+ $1 &* $1 }
        }.value
        if prints, let number { print("done \(number)", flush: true) }
        return "\(sum)\n"
    }
}

/// Prints a line, which is written when this returns.
func print(_ line: String, flush: Bool) {
    let text = line + "\n"
    _ = write(STDOUT_FILENO, text, text.utf8.count)  // one call, so that lines stay whole
}
