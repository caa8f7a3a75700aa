import BenchmarkCore
import Dispatch
import Synchronization

private let leavesOut =
    "No events, no snapshot to read, no handle of a call, no limit except one, no queue of waiting calls; no notification when it may run again."

/// A flag under a mutex.
final class MutexPeer: HandWrittenPeer {
    static let name = "mutex"
    static let source = "Benchmarks/Peers/ByHand/GatePeers.swift"

    static func form(_ workload: String) -> String? {
        workload.hasPrefix("W23-")
            ? "A condition, then a flag under a mutex before and after the work. \(leavesOut)" : nil
    }

    init(threads: Int) {}

    func run(_ workload: String, n: Int) throws -> Sample {
        actionCalls(MutexGate.self, workload, threads: n)
    }
}

/// An atomic flag.
final class FlagPeer: HandWrittenPeer {
    static let name = "flag"
    static let source = "Benchmarks/Peers/ByHand/GatePeers.swift"

    static func form(_ workload: String) -> String? {
        workload.hasPrefix("W23-")
            ? "A condition, then a compare-exchange of a flag before and a store after the work. \(leavesOut)"
            : nil
    }

    init(threads: Int) {}

    func run(_ workload: String, n: Int) throws -> Sample { actionCalls(FlagGate.self, workload, threads: n) }
}

/// An actor that knows whether it is running a call.
final class ActorPeer: HandWrittenPeer {
    static let name = "actor"
    static let source = "Benchmarks/Peers/ByHand/GatePeers.swift"

    static func form(_ workload: String) -> String? {
        workload.hasPrefix("W23-")
            ? "An actor with a flag, and tasks in place of threads. Even a task that is refused waits for its turn on the actor. \(leavesOut)"
            : nil
    }

    init(threads: Int) {}

    func run(_ workload: String, n: Int) throws -> Sample {
        let works = ActionWork.all(workload, threads: n)
        let gates = works.map { work in
            ActorGate(isEnabled: workload != "W23-closed") { index in work.run(index) }
        }
        let refused = Slots(count: n)
        return blocking {
            let start = startClock()
            let admitted = await withTaskGroup(of: Int.self) { group in
                for task in 0..<n {
                    group.addTask {
                        await Self.call(gates[task % gates.count], of: task, n, refused)
                    }
                }
                return await group.reduce(0, +)
            }
            let stop = stopClock()
            return ActionWork.sample(from: start, to: stop, workload, works, refused, admitted)
        }
    }

    private static func call(_ gate: ActorGate, of task: Int, _ tasks: Int, _ refused: Slots) async -> Int {
        var sum: UInt64 = 0
        var admitted = 0
        for index in ActionWork.share(of: task, tasks) {
            if await gate.call(index) { admitted += 1 } else { sum &+= Workload.mark(index) }
        }
        refused.address(of: task).pointee = sum
        return admitted
    }
}

/// The condition that the gates check before they admit a call: another thread may change it.
private final class Condition: Sendable {
    private let holds: Atomic<Bool>

    init(_ holds: Bool) { self.holds = Atomic(holds) }

    var isEnabled: @Sendable () -> Bool { { self.holds.load(ordering: .acquiring) } }
}

private final class MutexGate: ActionForm {
    private let isRunning = Mutex(false)
    private let isEnabled: @Sendable () -> Bool
    private let work: @Sendable (Int) -> Void

    init(isEnabled: Bool, _ work: @escaping @Sendable (Int) -> Void) {
        self.isEnabled = Condition(isEnabled).isEnabled
        self.work = work
    }

    func call(_ index: Int) -> Bool {
        guard isEnabled() else { return false }
        let isMine = isRunning.withLock { isRunning in
            defer { isRunning = true }
            return !isRunning
        }
        guard isMine else { return false }
        work(index)
        isRunning.withLock { $0 = false }
        return true
    }
}

private final class FlagGate: ActionForm {
    private let isRunning = Atomic(false)
    private let isEnabled: @Sendable () -> Bool
    private let work: @Sendable (Int) -> Void

    init(isEnabled: Bool, _ work: @escaping @Sendable (Int) -> Void) {
        self.isEnabled = Condition(isEnabled).isEnabled
        self.work = work
    }

    func call(_ index: Int) -> Bool {
        guard isEnabled(),
            isRunning.compareExchange(expected: false, desired: true, ordering: .acquiring).exchanged
        else { return false }
        work(index)
        isRunning.store(false, ordering: .releasing)
        return true
    }
}

private actor ActorGate {
    private var isRunning = false
    private let isEnabled: @Sendable () -> Bool
    private let work: @Sendable (Int) async -> Void

    init(isEnabled: Bool, _ work: @escaping @Sendable (Int) async -> Void) {
        self.isEnabled = Condition(isEnabled).isEnabled
        self.work = work
    }

    func call(_ index: Int) async -> Bool {
        guard isEnabled(), !isRunning else { return false }
        isRunning = true
        await work(index)
        isRunning = false
        return true
    }
}
