import BenchmarkCore
import Dispatch
import Glibc

/// Swift's own tasks on the global executor: a discarding task group, `async let`, actors, detached tasks.
/// The number of threads is that of the CPUs; nobody can choose it.
final class TaskGroupPeer: Pool {
    static let name = "taskgroup"
    static let version = "of the toolchain"
    static let source = "Benchmarks/Peers/TaskGroupPeer.swift"

    static func notApplicable(_ workload: String) -> String? { nil }

    init(threads: Int) {}

    // A group takes tasks only from the task that it belongs to: an outside thread detaches them, and counts.

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
        case "W9": blocking { await Self.forkJoin(n: n) }
        case "W11": blocking { await Self.pingPong(rounds: n) }
        case "W12": wakeUp(interval_ns: 1_000_000, count: n) { submit($0) }
        case "W13": idleCost(count: n) { submit($0) }
        case "W20": blocking { await Self.pendingMemory(count: n) }
        default: try runWithoutThreads(workload, n: n)
        }
    }

    func shutdown() {}

    private static func spawn(count: Int) async -> Sample {
        let slots = Slots(count: count)
        let start = now_ns()
        await withDiscardingTaskGroup { group in
            for index in 0..<count {
                let mark = Mark(slots: slots, index: index)
                group.addTask { mark.run() }
            }
        }
        let stop = now_ns()
        return Sample(from: start, to: stop, operations: count, checksum: slots.checksum)
    }

    private static func forkJoin(n: Int) async -> Sample {
        let start = now_ns()
        let value = await fork(n)
        let stop = now_ns()
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
        let start = now_ns()
        let sum = await Ping().play(Pong(), times: times)
        let stop = now_ns()
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
        // The task that adds the others occupies one of the executor's threads itself.
        let others = sysconf(Int32(_SC_NPROCESSORS_ONLN)) - 1
        let gate = Gate()
        gate.close(threads: others) { occupation in Task.detached { occupation.run() } }
        var memory = LiveBytes()
        let start = now_ns()
        await withDiscardingTaskGroup { group in
            for index in 0..<count {
                let mark = Mark(slots: slots, index: index)
                group.addTask { mark.run() }
            }
            memory.notePending()
            gate.open(threads: others)
        }
        let stop = now_ns()
        memory.noteDrained()
        return memory.sample(from: start, to: stop, operations: count, checksum: slots.checksum)
    }
}

/// Runs `body` in a task and blocks the calling thread, which is none of the executor's, until it ends.
private func blocking(_ body: @escaping @Sendable () async -> Sample) -> Sample {
    /// Sendable: written before the semaphore is signalled, read after it was waited for.
    final class Result: @unchecked Sendable {
        var sample: Sample?
    }
    let result = Result()
    let done = DispatchSemaphore(value: 0)
    Task.detached {
        result.sample = await body()
        done.signal()
    }
    done.wait()
    return result.sample.unsafelyUnwrapped
}
