// The examples of SchedulingEcosystem.docc: Scripts/documentation looks for every block of Swift in an article here. To change one is
// to change the other.

#if Ecosystem
    import Logging
    import Scheduling
    import SchedulingEcosystem
    import ServiceLifecycle
    import ServiceLifecycleTestKit
    import Testing
    import UnixSignals

    extension LoggingTests {
        @Test func `the examples of the article`() async throws {
            // SchedulingEcosystem.md
            let metrics = SchedulerMetrics()
            metrics.collect()  // before each scrape; or as a service of a group, at intervals
            // and
            let log = SchedulerLog(Logger(label: "scheduler"))
            // end of the example
            log.stop()
        }
    }

    extension TracingTests {
        @Test func `the example of the article traces`() {
            // SchedulingEcosystem.md
            RunTracing.start()  // with InstrumentationSystem.tracer
            // end of the example
            RunTracing.stop()
        }
    }

    extension LifecycleTests {
        private struct Server: Service {
            func run() async throws { try await gracefulShutdown() }
        }

        @Test func `the example of the article ends with its group`() async throws {
            let (scheduler, server) = (try Scheduler(), Server())
            let logger = Logger(label: "example") { _ in SwiftLogNoOpLogHandler() }
            try await testGracefulShutdown { trigger in
                trigger.triggerGracefulShutdown()
                // SchedulingEcosystem.md
                let group = ServiceGroup(
                    services: [SchedulerService(scheduler, deadline: .seconds(20)), server],
                    gracefulShutdownSignals: [.sigterm], logger: logger)
                try await group.run()
                // end of the example
            }
            #expect(throws: SchedulerError.self) { try scheduler.submit {} }
        }
    }
#endif
