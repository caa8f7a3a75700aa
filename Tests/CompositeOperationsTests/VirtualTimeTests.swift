// VirtualTimeTests.swift - random trees on one thread. The tape chooses which pending piece of work runs next, and time
// passes when nothing else is left to do. Hence an interleaving can be replayed from one line.
//
// Turns, handlers, the jobs of asynchronous blocks and calls "from elsewhere" are all such pieces. Only timers are
// tasks of the runtime, on a separate thread: the driver waits for them when it lets time pass.

import CompositeOperations
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

/// Stores the work it is given until the driver takes it.
private final class VirtualTarget: ExecutionTarget, TaskExecutor {
    private enum Piece: Sendable {
        case work(ExecutionWork)
        case job(UnownedJob)
        case call(@Sendable () -> Void)
    }

    private let pieces = Locked<[Piece]>([])

    func submit(_ work: ExecutionWork) { pieces.withLock { $0.append(.work(work)) } }
    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        pieces.withLock { $0.append(.job(job)) }
    }
    func call(_ body: @escaping @Sendable () -> Void) { pieces.withLock { $0.append(.call(body)) } }
    var isCurrent: Bool { false }

    var isEmpty: Bool { pieces.withLock { $0.isEmpty } }

    /// Runs one of the pieces.
    func step(_ choice: Int) {
        let piece = pieces.withLock { $0.remove(at: choice % $0.count) }
        switch piece {
        case .work(let work): work.run()
        case .job(let job): job.runSynchronously(on: asUnownedTaskExecutor())
        case .call(let body): body()
        }
    }
}

/// A clock that stands still until the driver advances it to the next deadline of a sleeper.
private final class VirtualClock: Clock, Sendable {
    typealias Instant = ManualClock.Instant

    private struct Sleeper {
        let id: Int
        let deadline: Instant
        let isPause: Bool
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var now = Instant(offset: .zero)
        var last = 0
        var sleepers: [Sleeper] = []
        var cancelled: Set<Int> = []
        var awoken = 0
    }

    private let state = Locked(State())

    var now: Instant { state.withLock { $0.now } }
    var minimumResolution: Duration { .nanoseconds(1) }
    /// The numbers of sleepers, for a pause and for a timeout. Counted separately, so a disarmed sleeper of one kind
    /// that is still there is not mistaken for a sleeper of the other kind that has yet to arrive.
    var sleepers: (pauses: Int, timeouts: Int) {
        state.withLock { state in
            let pauses = state.sleepers.count(where: \.isPause)
            return (pauses, state.sleepers.count - pauses)
        }
    }
    /// The number of sleeps that have ended.
    var awoken: Int { state.withLock { $0.awoken } }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        let id = state.withLock { state in
            state.last += 1
            return state.last
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isCancelled = state.withLock { state in
                    if state.cancelled.remove(id) != nil { return true }
                    // All timeouts are longer than all pauses.
                    let isPause = state.now.duration(to: deadline) < .seconds(1_000)
                    state.sleepers.append(
                        Sleeper(id: id, deadline: deadline, isPause: isPause, continuation: continuation))
                    return false
                }
                if isCancelled { continuation.resume(throwing: CancellationError()) }
            }
        } onCancel: {
            let sleeper = state.withLock { state in
                guard let index = state.sleepers.firstIndex(where: { $0.id == id }) else {
                    state.cancelled.insert(id)
                    return nil as CheckedContinuation<Void, any Error>?
                }
                return state.sleepers.remove(at: index).continuation
            }
            sleeper?.resume(throwing: CancellationError())
        }
        state.withLock { $0.awoken += 1 }
    }

    /// Wakes the sleeper with the earliest deadline.
    ///
    /// - Returns: false if there is no sleeper.
    func wakeNext() -> Bool {
        let next = state.withLock { state in
            guard
                let index = state.sleepers.indices.min(by: {
                    state.sleepers[$0].deadline < state.sleepers[$1].deadline
                })
            else { return nil as CheckedContinuation<Void, any Error>? }
            let next = state.sleepers.remove(at: index)
            state.now = max(state.now, next.deadline)
            return next.continuation
        }
        next?.resume()
        return next != nil
    }
}

private struct VirtualEnvironment: TreeEnvironment {
    let virtual = VirtualTarget()
    let virtualClock = VirtualClock()
    private let pauses = Count()

    func target(_ target: TreePlan.Target) -> (any ExecutionTarget)? { virtual }
    var handlerTarget: (any ExecutionTarget)? { virtual }
    var queueTarget: (any ExecutionTarget)? { virtual }
    var clock: (any Clock<Duration>)? { virtualClock }
    /// No two pauses end at the same time.
    func nextPause() -> Duration { .seconds(1) + .microseconds(pauses.add()) }
    func later(_ body: @escaping @Sendable () -> Void) { virtual.call(body) }
    var isSingleThreaded: Bool { true }
}

/// Time allowed for work on the runtime's own thread.
private let patience: Duration = testLimit * 0.5

/// Time allowed for an observed change to take effect on the runtime's thread.
private let grace: Duration = .seconds(2)

/// An upper bound that no plan reaches.
private let mostSteps = 20_000

/// Runs a plan on this thread.
///
/// - Returns: the violations found.
private func run(_ plan: TreePlan) async -> [String] {
    let environment = VirtualEnvironment()
    let (target, clock) = (environment.virtual, environment.virtualClock)
    let run = TreeRun(plan, on: environment)
    let model = TreeModel.of(plan)
    let needsHelp = model == nil || plan.nodes.contains(where: \.wasSuspended)
    let hasTimers = plan.hasPauses
    var commands = plan.commands.filter { $0.inside == nil }.sorted { $0.delay < $1.delay }[...]
    var steps = 0
    let isOver = { run.isOver.wait(timeout: .zero) }
    run.start()
    while steps < mostSteps {
        steps += 1
        while let command = commands.first, command.delay < steps || target.isEmpty {
            commands.removeFirst()
            run.perform(command)
        }
        if !target.isEmpty {
            target.step(steps <= plan.schedule.count ? plan.schedule[steps - 1] : 0)
        } else if isOver() {
            break
        } else if !(needsHelp && run.openEverything()), target.isEmpty {
            // There is nothing to do now: let time pass until the next pause ends. Work set off by the previous one may
            // still be on its way.
            if hasTimers, run.waitsForTime {
                guard await pass(run, clock, target) else { break }
            } else {
                guard hasTimers,
                    await eventually(within: grace, { !target.isEmpty || run.waitsForTime || isOver() })
                else { break }
            }
        }
    }
    guard isOver() else {
        return [(steps < mostSteps ? "it hangs:\n" : "it has no end:\n") + run.tree] + run.record().objections
    }
    let record = run.record()
    var objections = record.objections(to: plan) + (model?.objections(to: record) ?? [])
    if let queue = run.queue, queue.operationCount != 0 {
        objections.append("the queue has \(queue.operationCount)")
    }
    run.letGo()
    // The task of a timer, or a cancelled task, may still be exiting, possibly through the target.
    let isGone = await eventually(within: patience) {
        while !target.isEmpty { target.step(0) }
        return run.leftovers == (0, 0)
    }
    if !isGone { objections.append("\(run.leftovers) are left") }
    return objections
}

/// Lets time pass until the next timer has taken effect.
///
/// - Returns: false if there is none.
private func pass(_ run: TreeRun, _ clock: VirtualClock, _ target: VirtualTarget) async -> Bool {
    let end = ContinuousClock.now + patience
    while ContinuousClock.now < end {
        guard await eventually(within: patience, { clock.sleepers != (0, 0) }) else { return false }
        // Timers begin to sleep, and disarmed ones stop, with a delay.
        _ = await eventually(within: grace) { clock.sleepers == run.timers }
        let (before, awoken) = (run.progress, clock.awoken)
        guard clock.wakeNext() else { continue }
        // Wait for the woken sleeper, so that no other one is woken first, even on a busy machine.
        guard await eventually(within: patience, { clock.awoken > awoken }) else { return false }
        // A disarmed timer does nothing.
        guard await eventually(within: grace, { !target.isEmpty || run.progress != before }) else { continue }
        // A turn or a handler usually follows a moment later. Wait for it, so that the tape alone chooses the order.
        _ = await eventually(within: grace) { !target.isEmpty }
        return true
    }
    return false
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct VirtualTimeTests {
    private static func check(_ kinds: TreePlan.Kinds, cases: Int, covering: [Coverage<TreePlan>] = []) async
    {
        await forAll(TreePlan.plans(kinds), cases: cases, covering: covering) { plan in
            let objections = await run(plan)
            let text = objections.joined(separator: "\n")
            #expect(objections.isEmpty, "\(text)")
        }
        report()
    }

    @Test func `in virtual time trees end as the model says, in whichever order their work is done`() async {
        await Self.check(
            TreePlan.Kinds(isVirtual: true), cases: scaled(100),
            covering: [.cover(5, "time passes") { $0.hasPauses && TreeModel.of($0) != nil }])
    }

    @Test func `in virtual time trees end, whatever is done to them and when`() async {
        await Self.check(TreePlan.Kinds(hasCommands: true, isVirtual: true), cases: scaled(100))
    }

    @Test func `in virtual time trees in a queue end as the model says`() async {
        await Self.check(TreePlan.Kinds(hasQueue: true, isVirtual: true), cases: scaled(100))
    }

    @Test func `in virtual time trees in a queue end, whatever is done to both and when`() async {
        await Self.check(
            TreePlan.Kinds(hasCommands: true, hasQueue: true, isVirtual: true), cases: scaled(100))
    }
}
