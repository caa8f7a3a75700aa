import BenchmarkCore

/// W0: nothing between two readings of the clock. In addition, the time that a fixed piece of
/// arithmetic currently takes on this CPU, which distinguishes a slow peer from a slow machine.
func emptySample() -> Sample {
    let start = startClock()
    let end = stopClock()
    var sample = Sample(from: start, to: end, operations: 1, checksum: 0)
    let spinStart = now_ns()
    // Each step depends on the previous one, and no compiler can compute the sum of the sequence in advance.
    var word: UInt64 = 88_172_645_463_325_252
    for _ in 0..<1_000_000 {
        word ^= word << 13
        word ^= word >> 7
        word ^= word << 17
    }
    let spinEnd = now_ns()
    precondition(word != 0, "xorshift never reaches zero")
    sample.extra["spin_calibration_ns"] = Double(spinEnd - spinStart)
    return sample
}
