// RunEndTests - the ends of runs as other runs see them: reports from commands to operations and back, and the canceller.

import Commands
import CompositeOperations
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct RunEndTests {
    /// Runs that end without a value, though nothing in them failed.
    private func refused() async -> [CommandHandle<Void>] {
        let full = SerialInvoker(capacity: 1)
        let held = Held()
        full.submit(held)
        await held.begun.next()
        let tooMany = full.submit(ClosureCommand {})
        held.release()
        try? await full.flush()
        let closed = SerialInvoker()
        await closed.shutdown(.run)
        let clock = StepClock()
        let late = TransactionCommand(
            ClosureCommand { (context: CommandContext) in
                while !context.isCancelled { await Task.yield() }
                throw TestError()
            }.timeout(.seconds(1), clock: clock))
        async let end: Void? = try? late.execute()
        _ = await clock.slept.next()
        clock.wakeAll()
        _ = await end
        return [
            tooMany, closed.submit(ClosureCommand {}), late.handle,
            { TransactionCommand(ClosureCommand {}).handle }(),
        ]
    }

    @Test func `an operation that throws on why a command gave no value has failed`() async throws {
        for handle in await refused() {
            let kind = try #require(await handle.outcome.reason?.kind)
            let operation = COOperation<Void>({ try await handle.value })
            operation.start()
            #expect((await operation.outcome.error as? CancelReason)?.kind == kind)
            // The same holds for a composite whose block throws the reason.
            let cascade = cascadeOperation { (_: CascadeScope) -> Void in _ = try handle.result?.get() }
            cascade.start()
            #expect((await cascade.outcome.error as? CancelReason)?.kind == kind)
        }
    }

    @Test func `a command that throws on why an operation gave no value has failed`() async {
        for kind in [CancelReason.Kind.requested, .timedOut, .removed] {
            let operation = COOperation<Void>({})
            operation.cancel(CancelReason(kind))
            let mapped = TestError(number: 7)
            let command = TransactionCommand(
                ClosureCommand { try await operation.value },
                options: TransactionOptions(mapError: { _ in mapped }))
            await #expect(throws: mapped) { try await command.execute() }
            #expect(command.handle.result?.error as? TestError == mapped)
        }
    }

    @Test func `a command that forwards its cancellation to an operation was cancelled`() async {
        let operation = COOperation<Void>({ try await Task.sleep(for: .seconds(1000)) })
        let begun = Mail<Void>()
        let command = TransactionCommand(
            ClosureCommand {
                operation.start()
                begun.send(())
                try await withTaskCancellationHandler {
                    try await operation.value
                } onCancel: {
                    operation.cancel()
                }
            }, options: TransactionOptions(mapError: { _ in TestError() }))
        let invoker = SerialInvoker()
        let handle = invoker.submit(command)
        await begun.next()
        handle.cancel()
        #expect(await handle.outcome.reason?.kind == .requested)
        await #expect(throws: CancellationError.self) { try await handle.value }
        #expect(invoker.statistics.cancelled == 1)
    }

    @Test func `cancel reports whether it was in time`() async throws {
        let invoker = SerialInvoker()
        let (running, waiting) = (Held(), ClosureCommand {})
        let first = invoker.submit(running)
        await running.begun.next()
        let second = invoker.submit(waiting)
        #expect(second.cancel() && !second.cancel())
        #expect(first.cancel() && first.cancel())  // only asked to end
        running.release()
        #expect(await first.outcome.isFinished)
        #expect(!first.cancel())
    }

    @Test func `a run's cancel reason is reported, whenever it comes`() async throws {
        let invoker = SerialInvoker()
        let begun = Mail<Void>()
        let running = invoker.submit(
            ClosureCommand { (context: CommandContext) in
                begun.send(())
                while true { try context.checkCancellation() }
            })
        await begun.next()
        let waiting = invoker.submit(ClosureCommand {})
        waiting.cancel()
        running.cancel()
        let alone = invoker.submit(ClosureCommand { throw CancellationError() })
        #expect(await waiting.outcome.reason?.kind == .requested)
        #expect(await running.outcome.reason?.kind == .requested)
        #expect(await alone.outcome.reason?.kind == .threwCancellation)
        for handle in [running, waiting, alone] {
            await #expect(throws: CancellationError.self) { try await handle.value }
            #expect(throws: CancellationError.self) { try handle.result?.get() }
        }
    }
}
