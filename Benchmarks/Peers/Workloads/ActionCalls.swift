import BenchmarkCore
import Glibc
import Synchronization

/// Work together with the condition under which it may run; may be called from any thread.
protocol ActionForm: Sendable {
    /// - Parameter work: never runs concurrently with itself.
    init(isEnabled: Bool, _ work: @escaping @Sendable (Int) -> Void)

    /// Runs the work, or refuses.
    ///
    /// - Returns: whether the call was admitted.
    func call(_ index: Int) -> Bool
}

/// W23: threads that each call their own action, or that all call the same one.
func actionCalls<Form: ActionForm>(_ form: Form.Type, _ workload: String, threads: Int) -> Sample {
    let works = ActionWork.all(workload, threads: threads)
    let actions = works.map { work in
        Form(isEnabled: workload != "W23-closed") { index in work.run(index) }
    }
    let refused = Slots(count: threads)
    let admitted = Atomic(0)
    let (start, stop) = onThreads(threads) { thread in
        let action = actions[thread % actions.count]
        var sum: UInt64 = 0
        var count = 0
        for index in ActionWork.share(of: thread, threads) {
            if action.call(index) { count += 1 } else { sum &+= Workload.mark(index) }
        }
        refused.address(of: thread).pointee = sum
        admitted.add(count, ordering: .relaxed)
    }
    return ActionWork.sample(
        from: start, to: stop, workload, works, refused, admitted.load(ordering: .relaxed))
}

/// The work of an action. Only the action's gate protects the memory: two concurrent calls would lose a mark.
///
/// Sendable: see above.
final class ActionWork: @unchecked Sendable {
    private var sum: UInt64 = 0
    private let isContended: Bool

    private init(isContended: Bool) { self.isContended = isContended }

    /// The work of each action: one per thread if they are open, otherwise one for all.
    static func all(_ workload: String, threads: Int) -> [ActionWork] {
        (0..<(workload == "W23-open" ? threads : 1)).map { _ in
            ActionWork(isContended: workload == "W23-contended")
        }
    }

    @inline(never)
    func run(_ index: Int) {
        let before = sum
        // Another thread intervenes here if the gate lets it.
        if isContended, index % 64 == 0 { sched_yield() }
        sum = before &+ Workload.mark(index)
    }

    /// The calls of a thread.
    static func share(of thread: Int, _ threads: Int) -> Range<Int> {
        let calls = Workload.callsOfAllThreads
        return thread * calls / threads..<(thread + 1) * calls / threads
    }

    /// The marks of the calls that ran, and of those that were refused; the workload determines which may occur.
    static func sample(
        from start: Int, to stop: Int, _ workload: String, _ works: [ActionWork], _ refused: Slots,
        _ admitted: Int
    ) -> Sample {
        let ran = works.reduce(0) { $0 &+ $1.sum }
        let checksum =
            switch workload {
            case "W23-open": ran
            case "W23-closed": refused.checksum
            default: ran &+ refused.checksum
            }
        var sample = Sample(
            from: start, to: stop, operations: Workload.callsOfAllThreads, checksum: checksum)
        sample.extra = ["admitted_percent": 100 * Double(admitted) / Double(Workload.callsOfAllThreads)]
        return sample
    }
}
