// R39 to R42: sync operations, and the defects that once kept their callers waiting for ever.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct SyncRegressions {
    // MARK: R39

    @Test(.promises("G15", "R39"), arguments: Ending.allCases)
    func `R39: an end in the block is seen by the wait that begins after it`(ending: Ending) async {
        let sync = await aside { syncOperation(returning: Int.self) { ending.end($0) } }
        #expect(ending.fits(sync.result))
    }

    @Test(.promises("R39"), arguments: Ending.allCases)
    func `R39: an end by another thread, before the block returns, is seen`(ending: Ending) async {
        let sync = await aside {
            syncOperation(returning: Int.self) { attempt in
                let hasEnded = Gate()
                elsewhere.async {
                    ending.end(attempt)
                    hasEnded.open()
                }
                hasEnded.wait()
            }
        }
        #expect(ending.fits(sync.result))
    }

    @Test(.promises("G15", "R39"), arguments: Ending.allCases)
    func `R39: an end while the waiter goes to sleep is seen, whenever it comes`(ending: Ending) async {
        for spins in 0..<scaled(300) {
            let sync = await aside {
                syncOperation(returning: Int.self) { attempt in
                    elsewhere.async {
                        for _ in 0..<spins { sched_yield() }
                        ending.end(attempt)
                    }
                }
            }
            #expect(ending.fits(sync.result))
        }
    }

    @Test(.promises("R39"), arguments: Ending.allCases)
    func `R39: an operation ended before its start blocks no caller`(ending: Ending) async {
        let sync = COSyncOperation<Int> { $0.finish(1) }
        #expect(ending.end(sync))
        let hasStarted = await aside { sync.start() }
        #expect(!hasStarted)
        #expect(await aside { ending.fits(sync.wait()) })
        #expect(sync.numberOfRuns == 0)
    }

    // MARK: R40

    @Test(.promises("R40"), arguments: [false, true])
    func `R40: cancel wakes the waiter, also while suspended`(isSuspended: Bool) async {
        let sync = await aside {
            syncOperation { attempt in
                if isSuspended { attempt.suspend() }
                elsewhere.async {
                    attempt.operation.waitUntilLeftOpen()
                    attempt.operation.cancel()
                }
            }
        }
        #expect(sync.result?.reason?.kind == .requested)
    }

    @Test(.promises("R40")) func `R40: cancel wakes the waiter of one that was suspended before its start`()
        async
    {
        let sync = COSyncOperation<Void> { $0.finish() }
        #expect(sync.suspend())
        async let hasStarted = aside { sync.start() }
        #expect(await eventually { sync.attempt == 1 })
        #expect(sync.state == .suspended)
        #expect(sync.cancel())
        #expect(await hasStarted)
        #expect(sync.result?.reason?.kind == .requested)
        #expect(sync.numberOfRuns == 0)
    }

    @Test(.promises("R40"))
    func `R40: resume lets the waiter run a block that was suspended before its start`() async {
        let sync = COSyncOperation<Int> { $0.finish(Int(bitPattern: pthread_self())) }
        #expect(sync.suspend())
        async let waiter = aside {
            sync.start()
            return Int(bitPattern: pthread_self())
        }
        #expect(await eventually { sync.attempt == 1 })
        #expect(sync.resume())
        let thread = await waiter
        guard case .finished(thread)? = sync.result else {
            Issue.record("\(String(describing: sync.result)), but the waiter is \(thread)")
            return
        }
    }

    @Test(.promises("R40")) func `R40: cancel wakes the waiter for a block on a target once it returned`()
        async
    {
        let isIn = Gate()
        let mayLeave = Gate()
        let sync = COSyncOperation<Void>(on: elsewhere) { attempt in
            isIn.open()
            mayLeave.wait()
        }
        async let hasStarted = aside { sync.start() }
        await aside { isIn.wait() }
        #expect(sync.cancel())
        #expect(sync.result == nil)
        mayLeave.open()
        #expect(await hasStarted)
        #expect(sync.result?.isCancelled == true)
    }

    // MARK: R41

    @Test(.promises("R41")) func `R41: the waiter itself runs each rerun that another thread requests`()
        async
    {
        let threads = Log<pthread_t>()
        let (sync, waiter) = await aside {
            let sync = syncOperation { attempt in
                threads.add(pthread_self())
                if attempt.number == 4 {
                    attempt.finish()
                } else {
                    elsewhere.async {
                        attempt.operation.waitUntilLeftOpen()
                        attempt.rerun()
                    }
                }
            }
            return (sync, pthread_self())
        }
        #expect(sync.result?.isFinished == true)
        #expect(sync.attempt == 4)
        #expect(threads.entries == [waiter, waiter, waiter, waiter])
    }

    @Test(.promises("R41")) func `R41: the waiter runs a rerun delayed by a pause when it is due`()
        async
    {
        let clock = ManualClock()
        let runs = Count()
        let sync = COSyncOperation<Void>(options: OperationOptions(clock: clock)) { attempt in
            runs.add()
            if attempt.number == 1 { attempt.rerun(after: .seconds(5)) } else { attempt.finish() }
        }
        async let hasStarted = aside { sync.start() }
        #expect(await eventually { clock.sleepers == 1 })
        #expect(runs.value == 1)
        clock.advance(by: .seconds(5))
        #expect(await hasStarted)
        #expect(sync.isFinished)
        #expect(runs.value == 2)
    }

    @Test(.promises("R41")) func `R41: a rerun on a target is waited for as the first run is`() async {
        let runs = Count()
        let sync = COSyncOperation<Void>(on: elsewhere) { attempt in
            if runs.add() == 3 { attempt.finish() } else { attempt.rerun() }
        }
        #expect(await aside { sync.start() })
        #expect(sync.isFinished)
        #expect(runs.value == 3)
    }

    // MARK: R42

    static let serialTargets: [@Sendable () -> any ExecutionTarget] = [
        { serialQueue() },
        { DispatchQueue(label: "serial") },
        { ExecutorTarget(serialQueue() as any SerialExecutor) },
        { COOperationQueue(on: serialQueue()) },
        { COOperationQueue(runningLimit: 1, on: serialQueue()) },
    ]

    @Test(.promises("R42"), arguments: serialTargets.indices)
    func `R42: a block aimed at the serial target it is called on runs there and then`(index: Int)
        async throws
    {
        let target = Self.serialTargets[index]()
        let outer = operation(on: target) {
            let thread = pthread_self()
            let runs = Log<Bool>()
            syncOperation(on: target) { attempt in
                runs.add(pthread_self() == thread)
                if attempt.number < 3 { attempt.rerun() } else { attempt.finish() }
            }
            return runs.entries
        }
        #expect(try await outer.value == [true, true, true])
    }

    @Test(.promises("R42"), arguments: serialTargets.indices)
    func `R42: three nested blocks do, too`(index: Int) async throws {
        let target = Self.serialTargets[index]()
        let log = Log<Int>()
        let outer = operation(on: target) {
            let thread = pthread_self()
            let add: @Sendable (Int) -> Void = { log.add(pthread_self() == thread ? $0 : -$0) }
            syncOperation(on: target) { first in
                syncOperation(on: target) { second in
                    syncOperation(on: target) { third in
                        add(3)
                        third.finish()
                    }
                    add(2)
                    second.finish()
                }
                add(1)
                first.finish()
            }
        }
        _ = try await outer.value
        #expect(log.entries == [3, 2, 1])
    }

    @Test(.promises("R42"))
    func `R42: a dispatch queue is recognised below a previously recognised one`()
        async throws
    {
        let base = DispatchQueue(label: "base")
        let above = DispatchQueue(label: "above", target: base)
        let outer = operation(on: above) {
            // Both are current here: waiting for either one would mean waiting for this block.
            syncOperation(on: above) { $0.finish() }
            syncOperation(on: base) { $0.finish() }
            return above.isCurrent && base.isCurrent
        }
        #expect(try await outer.value)
    }

    @Test(.promises("R42")) func `R42: a block aimed at another serial target runs there`() async throws {
        let (one, other) = (DispatchQueue(label: "one"), DispatchQueue(label: "other"))
        let outer = operation(on: one) {
            let isThere = Count()
            syncOperation(on: other) { attempt in
                dispatchPrecondition(condition: .onQueue(other))
                isThere.add(other.isCurrent && !one.isCurrent ? 1 : 0)
                attempt.finish()
            }
            return isThere.value
        }
        #expect(try await outer.value == 1)
    }
}
