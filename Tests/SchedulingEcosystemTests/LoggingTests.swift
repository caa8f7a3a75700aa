// SchedulerLog.swift: what a log handler receives.

#if Ecosystem
    import CompositeOperations
    import CompositeOperationsTestSupport
    import Dispatch
    import InMemoryLogging
    import Logging
    import Observability
    import PropertyTestingSupport
    import Scheduling
    import SchedulingEcosystem
    import Testing

    private func entries(_ handler: InMemoryLogHandler, _ event: String) -> [InMemoryLogHandler.Entry] {
        handler.entries.filter { $0.metadata["event"] == "\(event)" }
    }

    @Suite struct LoggingTests {
        // Each test has its own process: a process has only one listener for diagnostics, and other
        // tests install their own.

        @Test func `a refused call is an entry with its operation`() async throws {
            await #expect(processExitsWith: .success) {
                let handler = InMemoryLogHandler()
                let log = SchedulerLog(Logger(label: "test") { _ in handler }, body: nil)
                let made = operation { 1 }
                _ = try await made.value
                made.start()
                #expect(
                    await eventually {
                        entries(handler, "diagnostic").contains {
                            $0.level == .warning && $0.metadata["operation"] == "\(made.id)"
                        }
                    })
                log.stop()
                let count = handler.entries.count
                made.start()
                #expect(handler.entries.count == count)
            }
        }

        @Test func `stopping a log leaves a later one in place`() async throws {
            await #expect(processExitsWith: .success) {
                let handler = InMemoryLogHandler()
                let first = SchedulerLog(Logger(label: "first") { _ in InMemoryLogHandler() }, body: nil)
                let second = SchedulerLog(Logger(label: "second") { _ in handler }, body: nil)
                first.stop()
                let made = operation { 1 }
                _ = try await made.value
                made.start()
                #expect(await eventually { !entries(handler, "diagnostic").isEmpty })
                second.stop()
            }
        }

        @Test func `a stall is an entry with its worker`() async throws {
            let handler = InMemoryLogHandler()
            let log = SchedulerLog(Logger(label: "test") { _ in handler }, body: .milliseconds(20))
            let gate = DispatchSemaphore(value: 0)
            try await withScheduler(.init(workers: 1, name: "l-stall", spareWorkers: 0)) { scheduler in
                try scheduler.submit { gate.wait() }
                #expect(
                    await eventually {
                        entries(handler, "stall").contains {
                            $0.metadata["scheduler"] == "l-stall" && $0.metadata["worker"] == "0"
                        }
                    })
                gate.signal()
            }
            log.stop()
        }

        @Test func `problems of a dump are entries`() async throws {
            let handler = InMemoryLogHandler()
            let log = SchedulerLog(Logger(label: "test") { _ in handler }, body: nil)
            Inspection.start()
            let forgotten = operation { (_: COOperation<Void>.Attempt) in }
            #expect(
                await eventually {
                    log.write(problemsOf: Inspection.dump(limit: 100_000)) > 0
                        && entries(handler, "problem").contains {
                            "\($0.message)".contains("\(forgotten.id)")
                        }
                })
            Inspection.stop()
            forgotten.finish()
            log.stop()
        }
    }
#endif
