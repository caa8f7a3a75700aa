// RunTracing.swift - spans of runs, by a tracer of swift-distributed-tracing.

#if Ecosystem
    internal import Runs
    internal import Scheduling
    public import Tracing

    /// Spans of what runs: one for each root operation, each run of a command and each durable run, from its start to its end.
    ///
    /// ```swift
    /// RunTracing.start()  // with InstrumentationSystem.tracer
    /// ```
    ///
    /// The current span is the parent where a run starts, and in the run its own span is the current one: so what it starts, and
    /// what it calls elsewhere, belongs to it. A child of a run has no span: its end is an event of the run. While
    /// tracing is off, a run asks one word about it.
    public enum RunTracing {
        /// Traces what starts from now on, in the whole process.
        ///
        /// - Parameter tracer: is called where runs start and end, under no lock; nil: `InstrumentationSystem.tracer`, as it is then.
        public static func start(_ tracer: (any Tracer)? = nil) {
            RunTrace.install(SpanMaker(tracer: tracer ?? InstrumentationSystem.tracer))
        }

        /// Traces nothing more that starts. Spans that have begun end with their runs.
        public static func stop() { RunTrace.install(nil) }
    }

    private struct SpanMaker: RunTracer {
        let tracer: any Tracer

        func begin(_ kind: RunTrace.Kind, _ name: String, number: UInt64) -> any RunSpan {
            let span = tracer.startAnySpan(name, ofKind: .internal)
            span.updateAttributes { attributes in
                attributes["run.kind"] = kind.rawValue
                attributes["run.number"] = Int64(clamping: number)
            }
            return MadeSpan(span: span)
        }
    }

    private struct MadeSpan: RunSpan {
        let span: any Span

        func bind(_ body: () -> Void) { ServiceContext.$current.withValue(span.context, operation: body) }

        nonisolated(nonsending) func bind<Value>(
            _ body: nonisolated(nonsending) () async throws -> Value
        ) async rethrows -> Value {
            try await ServiceContext.$current.withValue(span.context, operation: body)
        }

        func end(_ events: [RunTrace.Event], leftOut: Int, _ end: RunTrace.End, _ error: (any Error)?) {
            for event in events {
                span.addEvent(
                    SpanEvent(
                        name: event.name,
                        at: DefaultTracerClock.Instant(nanosecondsSinceEpoch: event.time_ns),
                        attributes: [
                            "run.number": Int64(clamping: event.number).toSpanAttribute(),
                            "run.attempt": event.attempt.toSpanAttribute(),
                            "run.end": event.end.rawValue.toSpanAttribute(),
                        ]))
            }
            span.updateAttributes { attributes in
                attributes["run.end"] = end.rawValue
                if leftOut > 0 { attributes["run.events_left_out"] = leftOut }
            }
            if let error { span.recordError(error) }
            if end == .failed { span.setStatus(SpanStatus(code: .error)) }
            span.end()
        }
    }
#endif
