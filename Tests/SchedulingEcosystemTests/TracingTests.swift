// RunTracing.swift, and its part in the core (RunTrace.swift): which spans exist, with which parents and events.

#if Ecosystem
    import CommandJournal
    import Commands
    import CompositeOperations
    import CompositeOperationsTestSupport
    import Foundation
    import InMemoryTracing
    import PropertyTestingSupport
    import Scheduling
    import SchedulingEcosystem
    import Testing
    import Tracing

    // The tests run one after another: a process has only one tracer.
    @Suite(.serialized) struct TracingTests {
        private struct Broken: Error {}

        /// Calls `body` while a tracer is installed.
        private func traced(_ body: (InMemoryTracer) async throws -> Void) async throws {
            let tracer = InMemoryTracer()
            RunTracing.start(tracer)
            defer { RunTracing.stop() }
            try await body(tracer)
        }

        /// The span of the run with that name, once it has ended.
        ///
        /// - Parameter outer: the parent of the span, if other tests have runs of the same name.
        private func span(
            _ name: String, _ tracer: InMemoryTracer, in outer: InMemorySpan? = nil
        ) async throws -> FinishedInMemorySpan {
            var found: [FinishedInMemorySpan] {
                tracer.finishedSpans.filter {
                    $0.operationName == name && (outer == nil || $0.parentSpanID == outer?.spanID)
                }
            }
            #expect(await eventually { !found.isEmpty })
            #expect(found.count == 1)
            return try #require(found.first)
        }

        private func named(_ name: String) -> OperationOptions {
            var options = OperationOptions()
            options.name = name
            return options
        }

        @Test func `a root operation has a span, the current one in its block`() async throws {
            try await traced { tracer in
                let inner = try await operation(options: named("t-root")) { ServiceContext.current }.value
                let span = try await span("t-root", tracer)
                #expect(inner?.inMemorySpanContext?.spanID == span.spanID)
                #expect(span.parentSpanID == nil)
                #expect(span.attributes.get("run.kind") == .string("operation"))
                #expect(span.attributes.get("run.end") == .string("finished"))
            }
        }

        @Test func `its parent is the span that is current where it starts`() async throws {
            try await traced { tracer in
                let outer = tracer.startSpan("t-outer")
                let asynchronous = try await ServiceContext.withValue(outer.context) {
                    try await operation(options: named("t-inner")) { () async in
                        await Task.yield()
                        return ServiceContext.current
                    }.value
                }
                outer.end()
                let span = try await span("t-inner", tracer)
                #expect(span.parentSpanID == outer.spanID)
                #expect(asynchronous?.inMemorySpanContext?.spanID == span.spanID)
            }
        }

        @Test func `a failure is the span's`() async throws {
            try await traced { tracer in
                let failing = operation(options: named("t-failing")) { () throws -> Int in throw Broken() }
                await #expect(throws: Broken.self) { try await failing.value }
                let span = try await span("t-failing", tracer)
                #expect(span.status?.code == .error)
                #expect(span.errors.contains { $0.error is Broken })
            }
        }

        @Test func `children are events of the root`() async throws {
            try await traced { tracer in
                let whole = cascadeOperation(options: named("t-whole")) { whole in
                    for number in 0..<3 {
                        whole.operation(options: named("t-child-\(number)")) { number }
                    }
                }
                _ = try await whole.value
                let span = try await span("t-whole", tracer)
                #expect(span.events.map(\.name) == (0..<3).map { "t-child-\($0)" })
                #expect(!tracer.finishedSpans.contains { $0.operationName.hasPrefix("t-child") })
            }
        }

        @Test func `a command has a span, also through an invoker`() async throws {
            try await traced { tracer in
                struct Direct: Command {
                    func execute(_ context: CommandContext) async throws -> ServiceContext? { .current }
                }
                struct Invoked: Command {
                    func execute(_ context: CommandContext) async throws -> ServiceContext? { .current }
                }
                let direct = try await TransactionCommand(Direct()).execute()
                let outer = tracer.startSpan("t-request")
                let handle = ServiceContext.withValue(outer.context) { SerialInvoker().submit(Invoked()) }
                let result = await handle.outcome
                outer.end()
                #expect(try await span("Direct", tracer).spanID == direct?.inMemorySpanContext?.spanID)
                let span = try await span("Invoked", tracer)
                #expect(span.parentSpanID == outer.spanID)
                if let context = result.value {
                    #expect(context?.inMemorySpanContext?.spanID == span.spanID)
                }
                #expect(span.attributes.get("run.kind") == .string("command"))
            }
        }

        @Test func `nothing is traced when it is off`() async throws {
            let tracer = InMemoryTracer()
            RunTracing.start(tracer)
            RunTracing.stop()
            _ = try await operation(options: named("t-off")) { 1 }.value
            #expect(tracer.finishedSpans.isEmpty && tracer.activeSpans.isEmpty)
        }

        #if Journal
            private struct Note: JournaledCommand {
                static let journalName = "t-note"
                let fails: Bool
                var idempotencyKey: String? { nil }
                func perform(_ context: CommandContext) async throws -> Performed<Int, Nothing> {
                    if fails { throw Broken() }
                    return Performed(1, undo: Nothing())
                }
                func undo(_ undo: Nothing, _ context: CommandContext) async throws {}
            }

            @Test func `a durable run has a span, and its members are events`() async throws {
                let path = NSTemporaryDirectory() + "/traced-\(UUID().uuidString).journal"
                defer {
                    for end in ["", "-wal", "-anchor", "-shm"] {
                        try? FileManager.default.removeItem(atPath: path + end)
                    }
                }
                try await traced { tracer in
                    let journal = try await CommandJournal(path: path, types: [Note.self])
                    _ = try await journal.recover()
                    _ = try await journal.execute(Note(fails: false))
                    let outer = tracer.startSpan("t-journal")
                    try await ServiceContext.withValue(outer.context) {
                        try await journal.execute(allOrNothing: [Note(fails: false), Note(fails: false)])
                    }
                    outer.end()
                    await journal.close()
                    let one = try await span("t-note", tracer)
                    #expect(one.attributes.get("run.kind") == .string("durable run"))
                    let whole = try await span("all or nothing", tracer, in: outer)
                    #expect(whole.events.count { $0.name == "member" } == 2)
                }
            }
        #endif
    }
#endif
