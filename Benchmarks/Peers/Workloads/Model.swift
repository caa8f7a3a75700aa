import BenchmarkCore

/// A model of values by key, whose changes are committed or rolled back together. It is confined to
/// one thread.
protocol ModelForm: SendableMetatype {
    /// A model of this many values, each its mark.
    init(keys: Int)

    /// A transaction: adds `mark` to the value of each key, then throws if `fails`.
    func transact(_ keys: ModelKeys, _ mark: UInt64, fails: Bool)

    var values: [UInt64] { get }
}

/// The keys that a transaction changes.
struct ModelKeys {
    let count: Int
    /// The index of the transaction, whose keys are scattered; nil: all keys of the model.
    let transaction: Int?

    @inline(__always)
    subscript(turn: Int) -> Int { transaction.map { Workload.key(turn, of: $0) } ?? turn }
}

/// Why a transaction is rolled back.
struct ModelFailure: Error {}

/// W22: transactions, each of `keys` keys.
func transactions<Form: ModelForm>(_ form: Form.Type, _ workload: String, keys: Int) -> Sample {
    let count = Workload.transactions(changing: keys)
    let fails = workload == "W22-rollback"
    let model = Form(keys: Workload.keysOfModel)
    let start = startClock()
    transact(model, count, keys: keys, fails: fails)
    let stop = stopClock()
    return Sample(
        from: start, to: stop, operations: count, checksum: Workload.checksum(ofModel: model.values))
}

private func transact(_ model: some ModelForm, _ count: Int, keys: Int, fails: Bool) {
    for transaction in 0..<count {
        let keys = ModelKeys(count: keys, transaction: transaction)
        model.transact(keys, Workload.mark(transaction), fails: fails)
    }
}

/// W22 where each key is an object.
func transactionsOfMembers<Form: ModelForm>(_ form: Form.Type, members: Int) -> Sample {
    let count = Workload.transactions(changing: members)
    let model = Form(keys: members)
    let keys = ModelKeys(count: members, transaction: nil)
    let start = startClock()
    for transaction in 0..<count { model.transact(keys, Workload.mark(transaction), fails: false) }
    let stop = stopClock()
    return Sample(
        from: start, to: stop, operations: count * members, checksum: Workload.checksum(ofModel: model.values)
    )
}

/// W22 on many threads, each with its own model.
func transactionsOnThreads<Form: ModelForm>(_ form: Form.Type, threads: Int) -> Sample {
    let sums = Slots(count: threads)
    let share = Workload.transactionsOfAllThreads / threads
    let (start, stop) = onThreads(threads) { _ in
        Form(keys: Workload.keysOfModel)
    } run: { thread, model in
        transact(model, share, keys: Workload.keysOfOneTransaction, fails: false)
    } after: { thread, model in
        sums.address(of: thread).pointee = Workload.checksum(ofModel: model.values)
    }
    return Sample(from: start, to: stop, operations: share * threads, checksum: sums.checksum)
}
