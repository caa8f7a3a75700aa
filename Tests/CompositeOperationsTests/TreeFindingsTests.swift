// TreeFindingsTests.swift - defects found by random trees, each as a minimal test.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct TreeFindingsTests {
    /// [A member was settled on the way up. The walk down from it then began with a parent that was already gone, and
    /// crashed.]
    @Test func `an end before the turn reaches a composite that restarts at once`() async {
        let leaves = Log<COOperation<Void>>()
        let resolver = COOperationResolver(maxAttempts: 2, redo: .rerun)
        let root = cascadeOperation(options: OperationOptions(resolver: resolver)) { cascade in
            cascade.transactionalOperation { group in
                group.suspend()
                leaves.add(group.operation { $0.finish() })
            }
        }
        for attempt in 1...2 {
            let isRegistered = await eventually { leaves.entries.count == attempt }
            #expect(isRegistered)
            let isCancelled = leaves.entries.last?.cancel()
            #expect(isCancelled == true)
        }
        let outcome = await root.outcome
        #expect(outcome.reason?.kind == .child)
        #expect(root.attempt == 2)
        #expect(leaves.entries.map(\.numberOfRuns) == [0, 0])
    }

    /// [The cancel was attributed to the attempt that an outer resolver had already begun, so the end of that attempt
    /// was not reported.]
    @Test func `a handler gets a direct cancel, and then the end of the next attempt`() async {
        let calls = Count()
        let runs = Count()
        let (first, second) = (Gate(), Gate())
        let inner = Locked<COCascade<Void>?>(nil)
        let resolver = COOperationResolver(maxAttempts: 2, redo: .awake)
        let root = cascadeOperation(options: OperationOptions(resolver: resolver)) { cascade in
            let child = cascade.cascadeOperation { cascade in
                cascade.operation(on: elsewhere) { _ in (runs.add() == 1 ? first : second).wait() }
            } cancellation: { _ in
                calls.add()
            }
            inner.withLock { $0 = child }
        }
        let hasBegun = await eventually { runs.value == 1 }
        let child = inner.withLock { $0 }
        let isCancelled = child?.cancel()
        #expect(hasBegun && isCancelled == true)
        first.open()
        let hasBegunAgain = await eventually { runs.value == 2 }
        #expect(hasBegunAgain)
        root.cancel()
        second.open()
        _ = await child?.outcome
        let outcome = await root.outcome
        #expect(outcome.reason?.kind == .requested)
        #expect(child?.attempt == 2)
        let isTold = await eventually { calls.value == 2 }
        #expect(isTold)
    }

    /// [The cause that had cancelled the task of the previous attempt was still recorded.]
    @Test func `an asynchronous attempt that throws a cancellation is not one whose task was cancelled`()
        async
    {
        let runs = Count()
        let resolver = COOperationResolver(maxAttempts: 2)
        let body: @Sendable () async throws -> Int = {
            if runs.add() == 1 { throw TestError() }
            throw CancellationError()
        }
        let leaf = operation(on: Overtaking(), options: OperationOptions(resolver: resolver), body)
        let outcome = await leaf.outcome
        #expect(outcome.reason?.kind == .threwCancellation)
        #expect(leaf.attempt == 2)
    }
}

/// A target whose first task begins after the turn that created it. Later tasks run inside `enqueue`, before their
/// creation returns.
private final class Overtaking: ExecutionTarget, TaskExecutor {
    private let queue = DispatchQueue(label: "overtaking")
    private let jobs = Count()
    var isCurrent: Bool { false }

    func submit(_ work: ExecutionWork) { queue.async { work.run() } }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if jobs.add() == 1 {
            queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
        } else {
            job.runSynchronously(on: asUnownedTaskExecutor())
        }
    }
}
