import BenchmarkCore

/// The operations of W17 and W18-pareto: each performs its steps of arithmetic, then adds its mark.
struct Grains: Sendable {
    let slots: Slots
    private let lengths: Slots
    private let lengthsInAll: Int
    private let longest: Int

    init(_ workload: String, n: Int) {
        let all = Workload.lengths(workload, n: n)
        slots = Slots(count: all.count)
        lengths = Slots(count: all.count)
        for (index, length) in all.enumerated() { lengths.address(of: index).pointee = length }
        lengthsInAll = Int(all.reduce(0, +))
        longest = Int(all.max() ?? 0)
    }

    var count: Int { slots.count }

    @inline(__always)
    subscript(index: Int) -> Grain {
        Grain(length: Int(lengths.address(of: index).pointee), mark: Mark(slots: slots, index: index))
    }

    /// - Parameter ideal: the result of ``ideal(threads:)``, computed before the clock started.
    func sample(from start: Int, to stop: Int, ideal: [String: Double]) -> Sample {
        var sample = Sample(from: start, to: stop, operations: count, checksum: slots.checksum)
        sample.extra = ideal
        return sample
    }

    func ideal(threads: Int) -> [String: Double] {
        Spin.ideal(steps: lengthsInAll, longest: longest, operations: count, threads: threads)
    }
}

struct Grain: Job {
    let length: Int
    let mark: Mark

    @inline(__always)
    func run() {
        if Spin.steps(length) != 0 { mark.run() }
    }
}

/// W17, W18-pareto: like W3, with operations that take time.
func spawnGrains<P: Pool>(_ pool: P, _ workload: String, n: Int) throws -> Sample {
    let grains = Grains(workload, n: n)
    let ideal = grains.ideal(threads: pool.threads)
    let start = startClock()
    let batch = try pool.batch(of: grains.count + 1)
    pool.submit(GrainsRoot(pool: pool, batch: batch, grains: grains), in: batch)
    pool.wait(for: batch)
    let stop = stopClock()
    return grains.sample(from: start, to: stop, ideal: ideal)
}

private struct GrainsRoot<P: Pool>: Job {
    let pool: P
    let batch: P.Batch
    let grains: Grains

    func run() {
        for index in 0..<grains.count { pool.submit(grains[index], in: batch) }
    }
}
