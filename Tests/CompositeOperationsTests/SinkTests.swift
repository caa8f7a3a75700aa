// The messages that are delivered to the diagnostics listener.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Runs
import Scheduling
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct SinkTests {
    /// [Each report wrapped the listener once more, until the stack was too small for all the wrappers.]
    @Test func `a listener may be notified 100,000 times on a small stack`() async {
        await #expect(processExitsWith: .success) {
            let count = Locked(0)
            Diagnostics.onReport { _ in count.withLock { $0 += 1 } }
            await onSmallStack { for _ in 0..<100_000 { Diagnostics.report(Diagnostic("again")) } }
            #expect(count.withLock { $0 } == 100_000)
        }
    }

    @Test func `the sink is notified of refusals and of unobserved failures`() async {
        await #expect(processExitsWith: .success) {
            let told = Log<Diagnostic>()
            Diagnostics.onReport { told.add($0) }
            let one = COOperation<Void>()
            one.start()
            try #require(told.entries.count == 1)
            try #require(told.entries[0].operation == one.id)
            try #require(told.entries[0].state == "ready" && told.entries[0].attempt == 0)
            try #require(told.entries[0].description.contains("without a block"))
            one.cancel()
            one.cancel()
            try #require(told.entries.count == 2)
            var failing: COOperation<Void>? = operation { _ in throw TestError() }
            let id = failing?.id
            try #require(await eventually { failing?.isEnded == true })
            try #require(told.entries.count == 2)
            failing = nil  // until now a caller could have read the outcome
            try #require(await eventually { told.entries.count == 3 })
            try #require(told.entries[2].operation == id && told.entries[2].attempt == 1)
            try #require(told.entries[2].message == "failed, and its error was never read: \(TestError())")
            let looked = COOperation<Void> { _ in throw TestError() }
            looked.onOutcome { _ in }
            looked.start()
            _ = await looked.outcome
            Diagnostics.onReport(nil)
            one.cancel()
            try #require(told.entries.count == 3)
        }
    }

    @Test func `the sink is told why a queue refuses an operation`() async {
        await #expect(processExitsWith: .success) {
            let told = Log<String>()
            Diagnostics.onReport { told.add($0.message) }
            let (queue, other) = (COOperationQueue(pendingLimit: 0), COOperationQueue())
            queue.suspend()
            try #require(!queue.add(COOperation<Void> { _ in }))
            try #require(!queue.add(COOperation<Void>(on: other) { _ in }))
            try #require(!queue.add(COOperation<Void>()))
            try #require(
                told.entries == [
                    "refused: add() to a queue that is full",
                    "refused: add() of an operation that belongs to another queue",
                    "refused: start() without a block",
                ])
        }
    }

    @Test func `the sink is told why a composite refuses a ready-made child`() async {
        await #expect(processExitsWith: .success) {
            let told = Log<String>()
            Diagnostics.onReport { told.add($0.message) }
            let (started, waits) = (operation {}, COOperation<Void> { _ in })
            let cascade = COCascade<Void> { cascade in
                for one in [started, waits] { _ = try? cascade.add(one) }
            }
            waits.addDependency(cascade)
            cascade.start()
            let outcome = await cascade.outcome
            try #require(outcome.isFinished)
            try #require(
                told.entries == [
                    "refused: a registration: alreadyStarted", "refused: a registration: wouldWaitForItself",
                ])
        }
    }

    @Test func `the sink is told of misuse that is allowed, in other words than of a refusal`() async {
        await #expect(processExitsWith: .success) {
            func wait() -> Bool { COSyncOperation<Void> { $0.finish() }.start() }
            let told = Log<Diagnostic>()
            Diagnostics.onReport { told.add($0) }
            try #require(wait())
            try #require(told.entries.map(\.message) == ["a sync operation blocks a thread of a task"])
        }
    }

    @Test(arguments: Look.allCases) func `an observed failure is not reported`(look: Look) async {
        await #expect(processExitsWith: .success) { [look] in
            let told = Log<Diagnostic>()
            Diagnostics.onReport { told.add($0) }
            func fail(_ look: Look?) async throws -> (id: OperationID, gone: Weak) {
                let failing = COOperation<Void> { (attempt: COOperation<Void>.Attempt) in
                    attempt.fail(TestError())
                    if look == .isFailedBeforeItsEnd { _ = attempt.operation.isFailed }
                }
                if look == .transitionsBefore { _ = failing.transitions.makeAsyncIterator() }
                let transitions = look == .transitions ? failing.transitions.makeAsyncIterator() : nil
                failing.start()
                try #require(await eventually { failing.isEnded })
                // None of these reveals how the operation ended.
                try #require(!failing.isExecuting && !failing.isReady && !failing.isSuspended)
                switch look {
                case .state: try #require(failing.state == .failed)
                case .isFailed: try #require(failing.isFailed)
                case .isFinished: try #require(!failing.isFinished)
                case .isCancelled: try #require(!failing.isCancelled)
                case .result: try #require(failing.result?.isFailed == true)
                case .value: _ = try? await failing.value
                case .handler: failing.onOutcome { _ in }
                case .tree: try #require(failing.tree.contains("failed"))
                case .transitionsAfter: _ = failing.transitions.makeAsyncIterator()
                case .isFailedBeforeItsEnd, .transitions, .transitionsBefore, nil: break
                }
                withExtendedLifetime(transitions) {}
                return (failing.id, Weak(failing))
            }
            let seen = try await fail(look)
            try #require(await eventually { seen.gone.operation == nil })
            let unseen = try await fail(nil)
            func isTold(_ id: OperationID) -> Bool { told.entries.contains { $0.operation == id } }
            try #require(await eventually { isTold(unseen.id) })
            // After this, all earlier reports have been delivered.
            try await Scheduler.shared.forEach(0..<1_000) { _ in }
            if look == .transitionsBefore {  // the observer was gone when it ended
                try #require(await eventually { isTold(seen.id) })
            } else {
                try #require(!isTold(seen.id))
            }
        }
    }

    enum Look: CaseIterable, Codable {
        case state, isFailed, isFinished, isCancelled, result, value, handler, tree, transitionsAfter,
            transitions
        case isFailedBeforeItsEnd, transitionsBefore
    }

    @Test func `reading causes, or a resolver's fallback, counts as observing a failure`() async {
        await #expect(processExitsWith: .success) {
            let told = Log<Diagnostic>()
            Diagnostics.onReport { told.add($0) }
            func fail(_ options: OperationOptions, readsCauses: Bool) async throws -> OperationID {
                let group = COTransaction<Void>(options: options) { group in
                    group.operation { () throws -> Void in throw TestError() }
                }
                group.start()
                try #require(await eventually { group.isEnded })
                if readsCauses { try #require(group.causes.count == 1) }
                return group.id
            }
            let resolver = COOperationResolver(maxAttempts: 1) { _ in }
            _ = try await fail(OperationOptions(), readsCauses: true)
            _ = try await fail(OperationOptions(resolver: resolver), readsCauses: false)
            let unseen = try await fail(OperationOptions(), readsCauses: false)
            try #require(await eventually { !told.entries.isEmpty })
            // After this, all earlier reports have been delivered.
            try await Scheduler.shared.forEach(0..<1_000) { _ in }
            try #require(told.entries.map(\.operation) == [unseen])
        }
    }

    @Test func `an operation may be released under a lock that its error's text takes`() async {
        await #expect(processExitsWith: .success) {
            struct Locking: Error, CustomStringConvertible {
                let lock = Locked(0)
                var description: String { lock.withLock { "locked \($0)" } }
            }
            let told = Log<Diagnostic>()
            let error = Locking()
            Diagnostics.onReport { entry in error.lock.withLock { _ in told.add(entry) } }
            var failing: COOperation<Void>? = operation { _ in throw error }
            try #require(await eventually { failing?.isEnded == true })
            error.lock.withLock { _ in failing = nil }
            try #require(await eventually { !told.entries.isEmpty })
            try #require(told.entries[0].message == "failed, and its error was never read: locked 0")
        }
    }

    @Test func `an operation whose block returned without finishing it is reported after 5 s`() async {
        await #expect(processExitsWith: .success) {
            let lines = try LinesOfStandardError()
            Diagnostics.writeToStandardError()
            let held = Log<COOperation<Void>.Attempt>()
            func hold(_ options: OperationOptions = OperationOptions()) -> COOperation<Void> {
                COOperation<Void>(options: options) { (attempt: COOperation<Void>.Attempt) in
                    held.add(attempt)
                }
            }
            let limited = OperationOptions(timeout: .seconds(3_600))
            let (forgotten, cancelled, suspended, timed) = (hold(), hold(), hold(), hold(limited))
            let finished = COOperation<Void> { (attempt: COOperation<Void>.Attempt) in attempt.finish() }
            let began = ContinuousClock.now
            for each in [cancelled, finished, suspended, timed] { each.start() }
            try #require(await eventually { held.entries.count == 3 })
            suspended.suspend()
            cancelled.cancel()
            held.entries.first { $0.operation === cancelled }?.finish()  // need not know of it
            forgotten.start()
            let line = await lines.next()
            try #require(ContinuousClock.now - began >= .seconds(5))
            try #require(
                line == "CompositeOperations: operation \(forgotten.id), attempt 1, executing: "
                    + "its block returned 5 s ago, and finish() has not been called yet")
        }
    }

    @Test func `without a listener, a debug build prints a line for each until disabled`() async {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            let one = COOperation<Void>()
            one.start()
            Diagnostics.onReport(nil)
            one.start()
            Diagnostics.report(Diagnostic("nobody reads this"))
            Diagnostics.writeToStandardError()
            Diagnostics.report(Diagnostic("two\nlines"))
            Diagnostics.report(Diagnostic(String(repeating: "long", count: 10_000)))
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        var lines = text.split(separator: "\n").filter { $0.hasPrefix("CompositeOperations: ") }
        #expect(lines.popLast()?.utf8.count == 4_095)
        #expect(lines.popLast() == "CompositeOperations: two lines")
        #if DEBUG
            #expect(
                lines == [
                    "CompositeOperations: operation #1, attempt 0, ready: refused: start() without a block"
                ]
            )
        #else
            #expect(lines.isEmpty)
        #endif
    }

    @Test func `a listener that stops restores its predecessor`() async {
        await #expect(processExitsWith: .success) {
            let told = Log<String>()
            Diagnostics.onReport { told.add("program: \($0.message)") }
            let first = Diagnostics.listen { told.add("first: \($0.message)") }
            let second = Diagnostics.listen { told.add("second: \($0.message)") }
            Diagnostics.report(Diagnostic("1"))
            Diagnostics.stop(first)
            Diagnostics.report(Diagnostic("2"))
            Diagnostics.stop(second)
            Diagnostics.report(Diagnostic("3"))
            Diagnostics.stop(second)
            Diagnostics.onReport(nil)
            let third = Diagnostics.listen { told.add("third: \($0.message)") }
            Diagnostics.stop(third)
            Diagnostics.report(Diagnostic("4"))
            try #require(told.entries == ["second: 1", "second: 2", "program: 3"])
        }
    }

    private struct Weak: Sendable {
        weak let operation: AnyOperation?
        init(_ operation: AnyOperation) { self.operation = operation }
    }

    /// The lines that this process writes to standard error from now on.
    private struct LinesOfStandardError: Sendable {
        private let reader: Int32

        init() throws {
            var ends: [Int32] = [0, 0]
            try #require(pipe(&ends) == 0)
            try #require(dup2(ends[1], STDERR_FILENO) >= 0)
            reader = ends[0]
        }

        func next() async -> String {
            await withCheckedContinuation { continuation in
                elsewhere.async {
                    var line: [UInt8] = []
                    var byte: UInt8 = 0
                    while read(reader, &byte, 1) == 1, byte != UInt8(ascii: "\n") { line.append(byte) }
                    continuation.resume(returning: String(decoding: line, as: UTF8.self))
                }
            }
        }
    }
}
