import BenchmarkCore

/// Work of a known length, for operations that take time.
enum Spin {
    /// Performs a number of steps of arithmetic, about a nanosecond each on a CPU of some 3 GHz. The amount is fixed, so
    /// that no peer gets more work because the clock was read at another time.
    ///
    /// - Parameter word: not 0.
    /// - Returns: a value that is never 0, although no compiler can prove it.
    @inline(never)
    static func steps(_ count: Int, from word: UInt64 = 88_172_645_463_325_252) -> UInt64 {
        // Each step depends on the previous one. A xorshift step has six dependent instructions: as many as two of these
        // steps.
        var word = word
        for _ in 0..<max(1, count / 2) {
            word ^= word << 13
            word ^= word >> 7
            word ^= word << 17
        }
        return word
    }

    /// The current length of a step on this CPU: the least of five measurements, because a thread may be interrupted.
    static func measureStep_ns() -> Double {
        let steps = 50_000
        let word = Slots(count: 1)
        let times = (0..<5).map { _ in
            let start = now_ns()
            // The work depends on the first reading of the clock, and is stored before the second: no compiler moves it out.
            word.address(of: 0).pointee = Spin.steps(steps, from: UInt64(start))
            return now_ns() - start
        }
        return Double(times.min() ?? 0) / Double(steps)
    }

    /// The reference figures of a sample: the mean length of an operation, and the least time per operation on this many
    /// threads with a CPU each.
    ///
    /// - Parameters:
    ///   - steps: the steps of all operations.
    ///   - longest: the steps of operations that can only run one after another.
    static func ideal(steps: Int, longest: Int, operations: Int, threads: Int) -> [String: Double] {
        let step_ns = measureStep_ns()
        let lanes = min(threads, Workload.cpus)
        let least = max(Double(steps) / Double(lanes), Double(longest))
        return [
            "grain_ns": Double(steps) * step_ns / Double(operations),
            "ideal_ns_per_op": least * step_ns / Double(operations),
        ]
    }
}
