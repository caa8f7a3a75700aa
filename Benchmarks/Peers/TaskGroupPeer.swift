import BenchmarkCore
import Dispatch
import Glibc
import Synchronization

/// Swift's own tasks on the global executor: a discarding task group, `async let`, actors, detached tasks.
/// The number of threads is that of the CPUs and cannot be chosen.
final class TaskGroupPeer: Pool {
    static let name = "taskgroup"
    static let version = "of the toolchain"
    static let source = "Benchmarks/Peers/TaskGroupPeer.swift"

    static func form(_ workload: String) -> String? {
        switch workload {
        case "W4", "W8", "W8-levels": "Detached tasks."
        case "W8-declared":
            "A detached task for each node, which awaits the values of its dependencies."
        case "W17", "W18-pareto", "R1", "R2", "R3": "A discarding task group."
        case "W18-tree": "A discarding task group at each node that has branches."
        case "W26": "Detached tasks of the priorities background and high."
        case _ where workload.hasPrefix("W27-"): "A sleeping task per timer; cancelling the timer cancels it."
        default: nil
        }
    }

    static func notApplicable(_ workload: String) -> String? {
        if Workload.isOfServers(workload) {
            return switch workload {
            case "W19": "It runs only tasks: see W19-task."
            case "W19-announced", "W19-announced-task": cannotBeTold
            case "R4", "R4-late", "R4-mixed": withoutServer
            default: nil
            }
        }
        return switch workload {
        case "W20-queued": "It has no queues."
        case "W25": withoutEnd
        default: withoutSuspension(workload)
        }
    }

    let threads: Int

    init(threads: Int) { self.threads = threads }

    // Only the task that owns a group can add tasks to it: an outside thread detaches tasks, and counts.

    func batch(of count: Int) -> Countdown { Countdown(count) }

    func submit(_ job: some Job, in batch: Countdown) {
        Task.detached { [unowned(unsafe) batch] in
            job.run()
            batch.leave()
        }
    }

    func wait(for batch: Countdown) { batch.wait() }

    func submit(_ job: some Job) {
        Task.detached { job.run() }
    }

    func run(_ workload: String, n: Int) throws -> Sample {
        switch workload {
        case "W2": submitFromOutside(self, threads: n, count: Workload.submissionsOfAllThreads)
        case "W3": blocking { await Self.spawn(count: n) }
        case "W4": startsOnBusyPool(self, busy: n)
        case "W5", "W5-range": blocking { await Self.group(count: n) }
        case "W6-serial": blocking { await Self.serial(steps: n) }
        case "W7": blocking { await Self.stages(width: n) }
        case "W8-declared": blocking { await Self.declaredGraph(workload, n: n) }
        case "W9": blocking { await Self.forkJoin(n: n) }
        case "W10":
            blocking {
                let start = startClock()
                let sum = await Self.sum(of: n, from: 0)
                let stop = stopClock()
                return Sample(from: start, to: stop, operations: n, checksum: sum)
            }
        case "W11": blocking { await Self.pingPong(rounds: n) }
        case "W12": wakeUp(interval_ns: 1_000_000, count: n) { submit($0) }
        case "W13": idleCost(count: n) { submit($0) }
        case "W14-0", "W14-1", "W14-50":
            blocking { await Self.cancellation(count: n, begun: Workload.started(workload, of: n)) }
        case "W17", "W18-pareto": Self.grains(workload, n: n, threads: threads)
        case "W18-tree": Self.tree(branches: n, threads: threads)
        case "W20", "W20-leaf", "W20-child": blocking { await Self.pendingMemory(count: n) }
        case "W19-task":
            startsWhileBlocked(blockers: n) {
                submit($0)
            } start: {
                submit($0)
            }
        case "W26":
            startsUnderFlood(percent: n, threads: threads) { operation in
                Task.detached(priority: .background) { operation.run() }
            } urgent: { mark in
                Task.detached(priority: .high) { mark.run() }
            }
        case "R4", "R4-late", "R4-mixed":
            try requests(connections: n, eventLoops: threads, on: nil, isMixed: workload == "R4-mixed")
        case _ where workload.hasPrefix("W27-"): timers(workload, n: n, TaskTimers(count: n, on: nil))
        case _ where workload.hasPrefix("W24-"): swiftTasks(workload, n: n, on: nil)
        default: try runWithoutThreads(workload, n: n)
        }
    }

    func shutdown() {}

    func loop(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
        blocking {
            await withDiscardingTaskGroup { group in
                for index in 0..<count { group.addTask { body(index) } }
            }
        }
    }

    private static func spawn(count: Int) async -> Sample {
        let slots = Slots(count: count)
        let start = startClock()
        await withDiscardingTaskGroup { group in
            for index in 0..<count {
                let mark = Mark(slots: slots, index: index)
                group.addTask { mark.run() }
            }
        }
        let stop = stopClock()
        return Sample(from: start, to: stop, operations: count, checksum: slots.checksum)
    }

    /// W5: a child that throws cancels the others, which check for cancellation before they begin.
    private static func group(count: Int) async -> Sample {
        let slots = Slots(count: count)
        let start = startClock()
        try? await withThrowingDiscardingTaskGroup { group in
            for index in 0..<count {
                let mark = Mark(slots: slots, index: index)
                group.addTask {
                    try Task.checkCancellation()
                    mark.run()
                }
            }
        }
        let stop = stopClock()
        return Sample(from: start, to: stop, operations: count, checksum: slots.checksum)
    }

    private static func stages(width: Int) async -> Sample {
        let count = Workload.stages(ofWidth: width)
        let slots = Slots(count: count * width)
        let start = startClock()
        for stage in 0..<count {
            try? await withThrowingDiscardingTaskGroup { group in
                for index in 0..<width {
                    let mark = StageMark(slots: slots, width: width, stage: stage, index: index)
                    group.addTask {
                        try Task.checkCancellation()
                        mark.run()
                    }
                }
            }
        }
        let stop = stopClock()
        return Sample(from: start, to: stop, operations: slots.count, checksum: slots.checksum)
    }

    /// W6 in a serial place, an actor: one task calls the actor step by step, which keeps the steps in order.
    private static func serial(steps: Int) async -> Sample {
        let adder = Adder()
        let start = startClock()
        for step in 0..<steps { await adder.add(step) }
        let sum = await adder.sum
        let stop = stopClock()
        return Sample(from: start, to: stop, operations: steps, checksum: sum)
    }

    private actor Adder {
        var sum: UInt64 = 0
        func add(_ step: Int) { sum &+= Workload.mark(step) }
    }

    private static func sum(of leaves: Int, from first: Int) async -> UInt64 {
        if leaves == 1 { return UInt64(first) }
        let part = leaves / 10
        return await withTaskGroup(of: UInt64.self) { group in
            for branch in 0..<10 { group.addTask { await sum(of: part, from: first + branch * part) } }
            var all: UInt64 = 0
            for await number in group { all &+= number }
            return all
        }
    }

    /// W14: tasks that have begun wait without a thread; the others have not begun, because all threads are
    /// occupied.
    private static func cancellation(count: Int, begun: Int) async -> Sample {
        let slots = Slots(count: count)
        let others = sysconf(Int32(_SC_NPROCESSORS_ONLN)) - 1
        let gate = Gate()
        var start = 0
        var cancelled = 0
        await withDiscardingTaskGroup { group in
            let waiting = Countdown(begun)
            for index in 0..<begun {
                let mark = Mark(slots: slots, index: index)
                group.addTask {
                    mark.run()
                    await UntilCancelled().wait { waiting.leave() }
                }
            }
            await waiting.waitInTask()
            gate.close(threads: others) { occupation in Task.detached { occupation.run() } }
            for index in begun..<count {
                let mark = Mark(slots: slots, index: index)
                group.addTask { if !Task.isCancelled { mark.run() } }
            }
            start = startClock()
            group.cancelAll()
            cancelled = now_ns()
            gate.open(threads: others)
        }
        let stop = stopClock()
        return storm(from: start, cancelled: cancelled, to: stop, slots, begun: begun)
    }

    private static func forkJoin(n: Int) async -> Sample {
        let start = startClock()
        let value = await fork(n)
        let stop = stopClock()
        return Sample(from: start, to: stop, operations: Workload.spawnsOfFibonacci(n), checksum: value)
    }

    private static func fork(_ n: Int) async -> UInt64 {
        if n < 2 { return UInt64(n) }
        async let left = fork(n - 1)
        async let right = fork(n - 2)
        return await left + right
    }

    private static func pingPong(rounds: Int) async -> Sample {
        let times = Slots(count: rounds + 1)
        let start = startClock()
        let sum = await Ping().play(Pong(), times: times)
        let stop = stopClock()
        return roundTrips(from: start, to: stop, times: times.values, checksum: sum)
    }

    private actor Ping {
        func play(_ pong: Pong, times: Slots) async -> UInt64 {
            var sum: UInt64 = 0
            for round in 0..<times.count - 1 {
                times.address(of: round).pointee = UInt64(now_ns())
                sum &+= Workload.mark(2 * round)
                sum = await pong.turn(sum, 2 * round + 1)
            }
            times.address(of: times.count - 1).pointee = UInt64(now_ns())
            return sum
        }
    }

    private actor Pong {
        func turn(_ sum: UInt64, _ turn: Int) -> UInt64 { sum &+ Workload.mark(turn) }
    }

    private static func pendingMemory(count: Int) async -> Sample {
        let slots = Slots(count: count)
        // The task that adds the others occupies one of the executor's threads.
        let others = sysconf(Int32(_SC_NPROCESSORS_ONLN)) - 1
        let gate = Gate()
        gate.close(threads: others) { occupation in Task.detached { occupation.run() } }
        var memory = LiveBytes()
        let start = startClock()
        await withDiscardingTaskGroup { group in
            for index in 0..<count {
                let mark = Mark(slots: slots, index: index)
                group.addTask { mark.run() }
            }
            memory.notePending()
            gate.open(threads: others)
        }
        let stop = stopClock()
        memory.noteDrained()
        return memory.sample(from: start, to: stop, operations: count, checksum: slots.checksum)
    }
}

/// A wait that only the cancellation of its task ends.
private final class UntilCancelled: Sendable {
    private enum State {
        case before
        case waiting(UnsafeContinuation<Void, Never>)
        case over
    }

    private let state = Mutex(State.before)

    /// - Parameter isWaiting: called before the wait.
    func wait(_ isWaiting: () -> Void) async {
        await withTaskCancellationHandler {
            isWaiting()
            await withUnsafeContinuation { continuation in
                let isOver = state.withLock { state in
                    if case .over = state { return true }
                    state = .waiting(continuation)
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            let former = state.withLock { state in
                defer { state = .over }
                return state
            }
            if case .waiting(let continuation) = former { continuation.resume() }
        }
    }
}
