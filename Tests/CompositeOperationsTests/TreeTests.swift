// TreeTests.swift - random trees on the built-in scheduler, with commands from threads that race.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Testing

/// Targets of all kinds, shared by all trees.
private struct RealEnvironment: TreeEnvironment {
    private static let lane = serialQueue()
    private static let serial = DispatchQueue(label: "serial")

    func target(_ target: TreePlan.Target) -> (any ExecutionTarget)? {
        switch target {
        case .inherited: nil
        case .lane: Self.lane
        case .serial: Self.serial
        case .concurrent: elsewhere
        }
    }

    var handlerTarget: (any ExecutionTarget)? { nil }
    var queueTarget: (any ExecutionTarget)? { nil }
    var clock: (any Clock<Duration>)? { nil }
    func nextPause() -> Duration { .microseconds(20) }
    func later(_ body: @escaping @Sendable () -> Void) { elsewhere.async(execute: body) }
    var isSingleThreaded: Bool { false }
}

/// The time limit for a tree that has lost an event. If a watchdog ended the process instead, the failure could not be
/// shrunk. When all tests run, some of them wait for most of a minute.
private let patience: Duration = testLimit * 0.5

/// Runs a plan, with one thread for each kind of commands.
///
/// - Returns: the violations found.
private func run(_ plan: TreePlan) async -> [String] {
    let run = TreeRun(plan, on: RealEnvironment())
    let model = TreeModel.of(plan)
    let isOver = await withCheckedContinuation { continuation in
        elsewhere.async { continuation.resume(returning: drive(run, isExact: model != nil)) }
    }
    guard isOver else { return ["it hangs:\n\(run.tree)"] + run.record().objections }
    if let queue = run.queue, await !eventually(within: patience, { queue.operationCount == 0 }) {
        return ["the queue still has \(queue.operationCount)"]
    }
    let record = run.record()
    var objections = record.objections(to: plan) + (model?.objections(to: record) ?? [])
    run.letGo()
    if await !eventually(within: patience, { run.leftovers == (0, 0) }) {
        objections.append("\(run.leftovers) are left")
    }
    return objections
}

/// - Returns: whether every outcome was delivered in time.
private func drive(_ run: TreeRun, isExact: Bool) -> Bool {
    let plan = run.plan
    if plan.commands.isEmpty {
        run.start()
    } else {
        // The trees start while the commands are issued.
        _ = concurrently(3) { index in
            if index == 2 { return run.start() }
            for command in plan.commands where command.inside == nil && command.thread == index {
                for _ in 0..<command.delay * 4 { sched_yield() }
                run.perform(command)
            }
        }
    }
    // No opening of a gate may be lost. Hence a deterministic plan gets no help from `openEverything()`.
    if isExact && !plan.nodes.contains(where: \.wasSuspended) { return run.isOver.wait(timeout: patience) }
    let end = ContinuousClock.now + patience
    while !run.isOver.wait(timeout: .microseconds(200)) {
        if ContinuousClock.now > end { return false }
        run.openEverything()
    }
    return true
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct TreeTests {
    private static func check(_ kinds: TreePlan.Kinds, cases: Int, covering: [Coverage<TreePlan>] = []) async
    {
        await forAll(TreePlan.plans(kinds), cases: cases, covering: covering) { plan in
            let objections = await run(plan)
            let text = objections.joined(separator: "\n")
            #expect(objections.isEmpty, "\(text)")
        }
        report()
    }

    @Test func `trees end as the model says, each operation once`() async {
        await Self.check(
            TreePlan.Kinds(), cases: scaled(800),
            covering: [
                .cover(40, "nothing left to chance") { TreeModel.of($0) != nil },
                .cover(2, "several attempts of a composite") { plan in
                    TreeModel.of(plan)?.operations.values.joined().contains {
                        $0.attempt > 1 && $0.decisions > 0
                    } ?? false
                },
            ])
    }

    @Test func `trees end, whatever is done to them`() async {
        await Self.check(TreePlan.Kinds(hasCommands: true), cases: scaled(600))
    }

    @Test func `trees in a queue end as the model says, and its limits hold`() async {
        await Self.check(TreePlan.Kinds(hasQueue: true), cases: scaled(400))
    }

    @Test func `trees in a queue end, whatever is done to both`() async {
        await Self.check(TreePlan.Kinds(hasCommands: true, hasQueue: true), cases: scaled(400))
    }
}

/// Prints totals for Scripts/campaign, which adds up the output of all processes.
func report() {
    guard getenv("TREES_REPORT") != nil else { return }
    let (trees, commands, blocks) = (TreeRun.trees.value, TreeRun.commands.value, TreeRun.blocks.value)
    print("trees: \(trees) trees, \(commands) commands, \(blocks) blocks so far")
}
