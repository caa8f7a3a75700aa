import BenchmarkCore

/// A loop of plain calls: the cost of the work itself, without a scheduler or an allocation.
final class SerialPeer: Pool {
    static let name = "serial"
    static let version = "a loop"
    static let source = "Benchmarks/Peers/SerialPeer.swift"

    static func notApplicable(_ workload: String) -> String? { withoutThreads(workload) }

    let threads: Int

    init(threads: Int) { self.threads = threads }

    func batch(of count: Int) {}

    @inline(__always)
    func submit(_ job: some Job, in batch: Void) { call(job) }

    func wait(for batch: Void) {}

    @inline(__always)
    func submit(_ job: some Job) { call(job) }

    func chain(steps: Int) -> Sample {
        let end = ChainEnd()
        let start = startClock()
        var value: UInt64 = 0
        for step in 0..<steps { value = next(value, step) }
        end.reach(value)
        end.wait()
        let stop = stopClock()
        return Sample(from: start, to: stop, operations: steps, checksum: end.value)
    }

    func forkJoin(n: Int) -> Sample {
        let start = startClock()
        let value = recursion(n)
        let stop = stopClock()
        return Sample(from: start, to: stop, operations: Workload.spawnsOfFibonacci(n), checksum: value)
    }

    func run(_ workload: String, n: Int) throws -> Sample { try runWithoutThreads(workload, n: n) }

    func shutdown() {}
}

// Not inlined: otherwise the compiler would turn the loop into a few vector instructions, or none.

@inline(never)
private func call(_ job: some Job) { job.run() }

@inline(never)
private func next(_ value: UInt64, _ step: Int) -> UInt64 { value &+ Workload.mark(step) }

@inline(never)
private func recursion(_ n: Int) -> UInt64 { n < 2 ? UInt64(n) : recursion(n - 1) + recursion(n - 2) }

/// Why a peer without threads cannot run a workload.
func withoutThreads(_ workload: String) -> String? {
    switch workload {
    case "W2": "It has one thread, the caller's."
    case "W4": "It is never busy with other work: submitting runs the operation."
    case "W6-serial": "It is serial already: see the chain."
    case "W11": "It does not have two sides: each turn would call the next."
    case "W19", "W19-task": "It has no thread to block except the caller's."
    case "W25": "It has no threads to start."
    case "W12", "W13": "It has no thread that can be idle."
    case "W20", "W14-0", "W14-1", "W14-50", "W15-suspend", "W20-leaf", "W20-child", "W20-queued":
        "Nothing is ever pending: submitting runs the operation."
    default: withoutGroups(workload)
    }
}
