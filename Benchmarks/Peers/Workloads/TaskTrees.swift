import BenchmarkCore
import Synchronization

/// W24: Swift tasks, created by a task that runs on the executor itself, or on the main actor.
///
/// - Parameter executor: where the tasks run; nil: the default executor.
func swiftTasks(_ workload: String, n: Int, on executor: (any TaskExecutor)?) -> Sample {
    if Workload.isFromMainActor(workload) {
        return onMainActor {
            await withTaskExecutorPreference(executor) {
                await TaskTrees(executor: executor).run(workload, n: n, from: MainActor.shared)
            }
        }
    }
    return blocking {
        await withTaskExecutorPreference(executor) {
            await TaskTrees(executor: executor).run(workload, n: n, from: nil)
        }
    }
}

/// Each workload is one function for both forms. The function runs on `isolation`; the tasks that it creates
/// are not isolated, so they run on the executor.
private struct TaskTrees: Sendable {
    let executor: (any TaskExecutor)?

    func run(_ workload: String, n: Int, from isolation: isolated (any Actor)?) async -> Sample {
        switch workload.split(separator: "-")[1] {
        case "group": await group(of: n, from: isolation)
        case "discarding": await discardingGroup(of: n, from: isolation)
        case "asynclet": await tree(leaves: n, from: isolation)
        case "tasks": await unstructured(count: n, from: isolation)
        case "actor": await calls(count: n, from: isolation)
        default: await handOvers(count: n, from: isolation)
        }
    }

    private func group(of count: Int, from isolation: isolated (any Actor)?) async -> Sample {
        let slots = Slots(count: count)
        let start = startClock()
        await withTaskGroup { group in
            for index in 0..<count {
                let mark = Mark(slots: slots, index: index)
                group.addTask { mark.run() }
            }
        }
        let stop = stopClock()
        return Sample(from: start, to: stop, operations: count, checksum: slots.checksum)
    }

    private func discardingGroup(of count: Int, from isolation: isolated (any Actor)?) async -> Sample {
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

    private func tree(leaves: Int, from isolation: isolated (any Actor)?) async -> Sample {
        let start = startClock()
        async let left = Self.sum(0..<leaves / 2)
        async let right = Self.sum(leaves / 2..<leaves)
        let sum = await left &+ right
        let stop = stopClock()
        return Sample(from: start, to: stop, operations: leaves, checksum: sum)
    }

    private static func sum(_ leaves: Range<Int>) async -> UInt64 {
        if leaves.count < 2 { return leaves.first.map(Workload.mark) ?? 0 }
        let middle = leaves.lowerBound + leaves.count / 2
        async let left = sum(leaves.lowerBound..<middle)
        async let right = sum(middle..<leaves.upperBound)
        return await left &+ right
    }

    /// Detached: in one of the forms, other unstructured tasks would inherit the main actor.
    private func unstructured(count: Int, from isolation: isolated (any Actor)?) async -> Sample {
        let start = startClock()
        var tasks: [Task<UInt64, Never>] = []
        tasks.reserveCapacity(count)
        for index in 0..<count {
            tasks.append(Task.detached(executorPreference: executor) { Workload.mark(index) })
        }
        var sum: UInt64 = 0
        for task in tasks { sum &+= await task.value }
        let stop = stopClock()
        return Sample(from: start, to: stop, operations: count, checksum: sum)
    }

    private func calls(count: Int, from isolation: isolated (any Actor)?) async -> Sample {
        let callers = Workload.callersOfActor
        let adder = Adder()
        let start = startClock()
        await withDiscardingTaskGroup { group in
            for caller in 0..<callers {
                let share = caller * count / callers..<(caller + 1) * count / callers
                group.addTask { for index in share { await adder.add(index) } }
            }
        }
        let stop = stopClock()
        return await Sample(from: start, to: stop, operations: count, checksum: adder.sum)
    }

    private actor Adder {
        var sum: UInt64 = 0
        func add(_ index: Int) { sum &+= Workload.mark(index) }
    }

    private func handOvers(count: Int, from isolation: isolated (any Actor)?) async -> Sample {
        let state = Slots(count: 2)
        let batons = [Baton(), Baton()]
        let start = startClock()
        await withDiscardingTaskGroup { group in
            for side in 0..<2 {
                group.addTask {
                    for turn in stride(from: side, to: count, by: 2) {
                        await batons[side].take()
                        SerialStep(state: state, step: turn, steps: .max, end: nil).run()
                        batons[1 - side].hand()
                    }
                }
            }
            batons[0].hand()
        }
        let stop = stopClock()
        return Sample(
            from: start, to: stop, operations: count, checksum: state.address(of: 1).pointee)
    }
}

/// A signal that one task sends and another waits for.
private final class Baton: Sendable {
    private enum State {
        case nowhere
        case handed
        case awaited(UnsafeContinuation<Void, Never>)
    }

    private let state = Mutex(State.nowhere)

    func hand() {
        let former = state.withLock { state in
            let former = state
            if case .awaited = former { state = .nowhere } else { state = .handed }
            return former
        }
        if case .awaited(let continuation) = former { continuation.resume() }
    }

    func take() async {
        await withUnsafeContinuation { continuation in
            let isThere = state.withLock { state in
                if case .handed = state {
                    state = .nowhere
                    return true
                }
                state = .awaited(continuation)
                return false
            }
            if isThere { continuation.resume() }
        }
    }
}
