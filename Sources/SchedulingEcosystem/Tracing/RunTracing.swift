// RunTracing.swift - spans of runs, created by a tracer of swift-distributed-tracing.

#if Ecosystem
    internal import Runs
    internal import Scheduling
    public import Tracing

    /// Spans of runs: one for each root operation, each run of a command and each durable run, from its start to its end.
    ///
    /// ```swift
    /// RunTracing.start()  // with InstrumentationSystem.tracer
    /// ```
    ///
    /// The parent of a run's span is the span that is current where the run starts. Within the run its own span is current, so
    /// whatever the run starts, or calls elsewhere, belongs to it. A child of a run has no span: its end is an event of the run.
    /// While tracing is off, a run checks one word.
    public enum RunTracing {
        /// Traces runs that start from now on, in the whole process.
        ///
        /// - Parameter tracer: called where runs start and end, under no lock; nil: the `InstrumentationSystem.tracer` at the
        ///   time of this call.
        public static func start(_ tracer: (any Tracer)? = nil) {
            RunTrace.install(SpanMaker(tracer: tracer ?? InstrumentationSystem.tracer))
        }

        /// Stops tracing new runs. Open spans end with their runs.
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
