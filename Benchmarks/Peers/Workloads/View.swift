import BenchmarkCore
import Synchronization

/// Two values that one thread changes together while other threads read them.
protocol ViewForm: SendableMetatype {
    init(_ first: UInt64, _ second: UInt64)

    /// A transaction: takes an amount from the first value and adds it to the second.
    func transfer(_ amount: UInt64)

    /// The function that readers call: it returns both values, as a transaction left them.
    var reader: @Sendable () -> (UInt64, UInt64) { get }
}

/// W22: one thread changes a model, and `readers` other threads read it until the changes have ended. Reading half of a
/// transaction makes the result wrong.
func transactionsWithReaders<Form: ViewForm>(_ form: Form.Type, readers: Int) -> Sample {
    let count = Workload.transactionsWithReaders
    // Used by the first thread alone.
    nonisolated(unsafe) let model = Form(Workload.mark(0), Workload.mark(1))
    let read = model.reader
    let sum = Workload.mark(0) &+ Workload.mark(1)
    let isOver = Atomic(false)
    let halves = Atomic<UInt64>(0)
    let reads = Atomic(0)
    let (start, stop) = onThreads(1 + readers) { thread in
        if thread == 0 {
            for transaction in 0..<count { model.transfer(Workload.mark(transaction)) }
            return isOver.store(true, ordering: .relaxed)
        }
        var (wrong, right) = (UInt64(0), 0)
        while !isOver.load(ordering: .relaxed) {
            let (first, second) = read()
            if first &+ second == sum { right += 1 } else { wrong += 1 }
        }
        halves.add(wrong, ordering: .relaxed)
        reads.add(right, ordering: .relaxed)
    }
    let (first, second) = read()
    var sample = Sample(
        from: start, to: stop, operations: count,
        checksum: Workload.checksum(ofModel: [first, second]) &+ halves.load(ordering: .relaxed))
    sample.extra = ["reads_per_op": Double(reads.load(ordering: .relaxed)) / Double(count)]
    return sample
}
