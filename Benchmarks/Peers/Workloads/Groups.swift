import BenchmarkCore
import Synchronization

/// A hand-written group of closures: a flag that is checked before each begins, and a handle with a
/// state for each.
final class HandMadeGroup: @unchecked Sendable {
    // Unchecked: `children` is complete before the group is cancelled.
    private let isCancelled = Atomic(false)
    private(set) var children: [HandMadeChild] = []

    init(count: Int) { children.reserveCapacity(count) }

    /// A handle, and the job that keeps it alive.
    ///
    /// - Parameter endsLater: whether the operation is still in flight after it has returned.
    func child<Work: Job>(_ work: Work, endsLater: Bool = false) -> HandMadeWork<Work> {
        let child = HandMadeChild()
        children.append(child)
        return HandMadeWork(group: self, child: child, work: work, endsLater: endsLater)
    }

    var isOpen: Bool { !isCancelled.load(ordering: .relaxed) }

    /// Keeps further children from beginning; cancels those of the first `begun` that are in flight.
    func cancel(begun: Int) {
        isCancelled.store(true, ordering: .sequentiallyConsistent)
        for child in children[..<begun] { child.end(as: .cancelled) }
    }
}

/// A handle.
final class HandMadeChild: Sendable {
    enum State: UInt8 { case pending, running, finished, cancelled }

    private let state = Atomic(State.pending.rawValue)

    func begin() -> Bool { move(from: .pending, to: .running) }

    func end(as end: State) { _ = move(from: .running, to: end) }

    @inline(__always)
    private func move(from: State, to: State) -> Bool {
        state.compareExchange(
            expected: from.rawValue, desired: to.rawValue, ordering: .acquiringAndReleasing
        ).exchanged
    }
}

struct HandMadeWork<Work: Job>: Job {
    unowned(unsafe) let group: HandMadeGroup  // the waiter keeps it alive
    let child: HandMadeChild
    let work: Work
    let endsLater: Bool

    func run() {
        guard group.isOpen, child.begin() else { return }
        work.run()
        if !endsLater { child.end(as: .finished) }
    }
}

/// W5 by hand: like W3, with a handle for each operation.
func groupByHand<P: Pool>(_ pool: P, count: Int) throws -> Sample {
    let slots = Slots(count: count)
    let start = startClock()
    let group = HandMadeGroup(count: count)
    let batch = try pool.batch(of: count + 1)
    pool.submit(GroupRoot(pool: pool, batch: batch, group: group, slots: slots), in: batch)
    pool.wait(for: batch)
    let end = stopClock()
    withExtendedLifetime(group) {}
    return Sample(from: start, to: end, operations: count, checksum: slots.checksum)
}

private struct GroupRoot<P: Pool>: Job {
    let pool: P
    let batch: P.Batch
    let group: HandMadeGroup
    let slots: Slots

    func run() {
        for index in 0..<slots.count {
            pool.submit(group.child(Mark(slots: slots, index: index)), in: batch)
        }
    }
}

/// Adds its mark to its slot; after the first stage, only if the slot `before` has been marked.
struct StageMark: Job {
    nonisolated(unsafe) private let slot: UnsafeMutablePointer<UInt64>
    nonisolated(unsafe) private let before: UnsafeMutablePointer<UInt64>?
    private let mark: UInt64

    /// - Parameter slots: one for each operation of all stages; the waiter keeps them alive.
    init(slots: Slots, width: Int, stage: Int, index: Int) {
        slot = slots.address(of: stage * width + index)
        // The mirrored index in the previous stage: probably run by another worker.
        before = stage == 0 ? nil : slots.address(of: stage * width - 1 - index)
        mark = Workload.mark(stage * width + index)
    }

    @inline(__always)
    func run() {
        if before?.pointee != 0 { slot.pointee &+= mark }
    }
}

/// W7 by hand: the last operation of a stage begins the next stage.
func stagesByHand<P: Pool>(_ pool: P, width: Int) -> Sample {
    let stages = Stages(pool: pool, width: width)
    let count = width * stages.count
    let start = startClock()
    stages.begin(0)
    stages.end.wait()
    let stop = stopClock()
    return Sample(from: start, to: stop, operations: count, checksum: stages.slots.checksum)
}

/// Sendable: only the last operation of a stage replaces the group.
private final class Stages<P: Pool>: @unchecked Sendable {
    let pool: P
    let width: Int
    let count: Int
    let slots: Slots
    let end = ChainEnd()
    private var group = HandMadeGroup(count: 0)
    private let left = Atomic(0)

    init(pool: P, width: Int) {
        self.pool = pool
        self.width = width
        count = Workload.stages(ofWidth: width)
        slots = Slots(count: width * count)
    }

    func begin(_ stage: Int) {
        left.store(width, ordering: .relaxed)
        // A child accesses its group before it signals its end; the next group may be created only
        // after that.
        let group = HandMadeGroup(count: width)
        self.group = group
        for index in 0..<width {
            let mark = StageMark(slots: slots, width: width, stage: stage, index: index)
            pool.submit(StageJob(stages: self, stage: stage, work: group.child(mark)))
        }
    }

    func ended(_ stage: Int) {
        guard left.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 else { return }
        if stage + 1 == count { end.reach(0) } else { begin(stage + 1) }
    }
}

private struct StageJob<P: Pool>: Job {
    unowned(unsafe) let stages: Stages<P>
    let stage: Int
    let work: HandMadeWork<StageMark>

    func run() {
        work.run()
        stages.ended(stage)
    }
}
