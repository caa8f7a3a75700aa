import BenchmarkCore

/// W25: successive pools of this kind, each of which runs one operation.
func lives<P: ThreadPool>(of type: P.Type, threads: Int, count: Int) throws -> Sample {
    let slots = Slots(count: count)
    let start = startClock()
    for index in 0..<count {
        let pool = try P(threads: threads)
        let end = ChainEnd()
        pool.submit(OnlyOperation(mark: Mark(slots: slots, index: index), end: end))
        end.wait()
        pool.shutdown()
    }
    let stop = stopClock()
    return Sample(from: start, to: stop, operations: count, checksum: slots.checksum)
}

private struct OnlyOperation: Job {
    let mark: Mark
    unowned(unsafe) let end: ChainEnd

    func run() {
        mark.run()
        end.reach(0)
    }
}

/// Why the cost of starting and ending a peer's pool cannot be measured.
let withoutEnd = "Its threads belong to the process: no pool starts or ends them."
