import BenchmarkCore
import PthreadPool

/// The closure of every operation, allocated, called and released, and nothing else: the limit for any API that
/// takes closures.
final class FloorPeer: Pool {
    static let name = "floor"
    static let version = "the closures alone"
    static let source = "Benchmarks/Peers/FloorPeer.swift"

    static func form(_ workload: String) -> String? { BareForms.form(workload) }

    static func notApplicable(_ workload: String) -> String? {
        if ["W17", "W18-pareto", "W18-tree", "R1", "R2", "R3"].contains(workload) {
            return "The limit is the work, divided evenly: see serial, and the ideal time."
        }
        return Workload.isOfLibraries(workload) ? BareForms.notApplicable(workload) : withoutThreads(workload)
    }

    let threads: Int

    init(threads: Int) { self.threads = threads }

    func batch(of count: Int) {}

    @inline(__always)
    func submit(_ job: some Job, in batch: Void) { submit(job) }

    func wait(for batch: Void) {}

    @inline(__always)
    func submit(_ job: some Job) {
        Words.of({ job.run() }) { pthread_pool_call($0, $1, $2) }
    }

    /// A loop: if each step called the next, a long chain would need a deep stack.
    func chain(steps: Int) -> Sample {
        let end = ChainEnd()
        let start = startClock()
        let values = Slots(count: 1)
        for step in 0..<steps {
            submit(
                FloorStep(
                    value: values.address(of: 0), step: step, steps: steps, before: values.checksum, end: end)
            )
        }
        end.wait()
        let stop = stopClock()
        return Sample(from: start, to: stop, operations: steps, checksum: end.value)
    }

    /// A cascade is declared before it begins: all of its steps are in memory then, each with a handle and a
    /// closure.
    private func cascade(steps: Int) -> Sample {
        let start = startClock()
        var handles: [FloorHandle] = []
        for step in 0..<steps {
            let former = handles.last
            handles.append(FloorHandle { (former?.value ?? 0) &+ Workload.mark(step) })
        }
        for handle in handles { handle.run() }
        let value = handles.last?.value ?? 0
        handles = []
        let stop = stopClock()
        return Sample(from: start, to: stop, operations: steps, checksum: value)
    }

    func run(_ workload: String, n: Int) throws -> Sample {
        if Workload.isOfLibraries(workload) { return try BareForms.run(self, workload, n: n) }
        return workload == "W6-cascade" ? cascade(steps: n) : try runWithoutThreads(workload, n: n)
    }

    func shutdown() {}
}

/// The smallest handle that an API can give its user before the step has run.
private final class FloorHandle {
    private(set) var value: UInt64 = 0
    private var body: (() -> UInt64)?

    init(_ body: @escaping () -> UInt64) { self.body = body }

    func run() {
        value = body?() ?? 0
        body = nil
    }
}

/// A step as large as that of a chain on a pool.
private struct FloorStep: Job {
    nonisolated(unsafe) let value: UnsafeMutablePointer<UInt64>
    let step: Int
    let steps: Int
    let before: UInt64
    unowned(unsafe) let end: ChainEnd

    func run() {
        value.pointee = before &+ Workload.mark(step)
        if step + 1 == steps { end.reach(value.pointee) }
    }
}
