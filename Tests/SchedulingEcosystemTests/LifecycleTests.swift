// SchedulerService.swift: what a shutdown runs, what it cancels, and what it reports.

#if Ecosystem
    import Dispatch
    import Observability
    import PropertyTesting
    import PropertyTestingSupport
    import Scheduling
    import SchedulingEcosystem
    import ServiceLifecycle
    import ServiceLifecycleTestKit
    import CompositeOperationsTestSupport
    import Testing

    @Suite struct LifecycleTests {
        /// A scheduler whose only worker runs a body until `gate` is opened.
        private struct Busy {
            let scheduler: Scheduler
            let gate = DispatchSemaphore(value: 0)
            let ran = Count()

            init(_ name: String, waiting: Int) async throws {
                scheduler = try Scheduler(.init(workers: 1, name: name, spareWorkers: 0))
                let begun = Mail<Void>()
                try scheduler.submit { [gate, ran] in
                    begun.send(())
                    gate.wait()
                    ran.add()
                }
                await begun.next()
                for _ in 0..<waiting { try scheduler.submit { [ran] in ran.add() } }
            }
        }

        @Test func `a graceful shutdown runs waiters`() async throws {
            let busy = try await Busy("busy-drain", waiting: 20)
            let service = SchedulerService(busy.scheduler, deadline: .seconds(600))
            try await testGracefulShutdown { trigger in
                async let end: Void = service.run()
                trigger.triggerGracefulShutdown()
                busy.gate.signal()
                try await end
            }
            #expect(busy.ran.value == 21)
            #expect(throws: SchedulerError.self) { try busy.scheduler.submit {} }
        }

        /// Resubmits itself for ever; only a cancellation ends it.
        @Sendable private static func goOn(on scheduler: Scheduler) {
            try? scheduler.submit { goOn(on: scheduler) }
        }

        @Test func `work not begun by the deadline is cancelled and counted`() async throws {
            let scheduler = try Scheduler(.init(workers: 1, name: "endless"))
            Self.goOn(on: scheduler)
            let service = SchedulerService(scheduler, deadline: .zero)
            await testGracefulShutdown { trigger in
                trigger.triggerGracefulShutdown()
                let error = await #expect(throws: SchedulerServiceError.self) { try await service.run() }
                if case .deadlinePassed(let deadline, let cancelled)? = error {
                    #expect(deadline == .zero && cancelled > 0)
                    #expect(cancelled == scheduler.statistics.cancelled)
                } else {
                    Issue.record("\(String(describing: error))")
                }
            }
        }

        @Test func `a service whose task is cancelled cancels waiters`() async throws {
            let busy = try await Busy("busy-stop", waiting: 3)
            let service = SchedulerService(busy.scheduler, deadline: .seconds(600))
            let task = Task { try await service.run() }
            task.cancel()
            // Waiting operations are marked before the scheduler refuses anything.
            #expect(
                await eventually {
                    SchedulerState.all().contains { $0.name == "busy-stop" && $0.isClosing }
                })
            busy.gate.signal()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(busy.ran.value == 1 && busy.scheduler.statistics.cancelled == 3)
        }

        @Test func `the shared scheduler is no service`() async {
            await #expect(processExitsWith: .failure) {
                _ = SchedulerService(.shared, deadline: .seconds(1))
            }
        }
    }
#endif
