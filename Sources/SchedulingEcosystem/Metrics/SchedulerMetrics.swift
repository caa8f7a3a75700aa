// SchedulerMetrics.swift - reads the schedulers on request or at intervals, and sets metrics.
//
// One collection runs at a time, since figures are compared with those of the previous collection. The lock guards the last
// reading. The factory and its handlers, which are user code, are called outside of the lock, only by the thread that has taken
// `state`.

#if Ecosystem
    public import CoreMetrics
    internal import CompositeOperationsBasics
    @_spi(Faces) internal import Runs
    public import ServiceLifecycle

    /// The figures of the process's schedulers, as metrics: those of ``SchedulerMetric``, read on request or at intervals.
    ///
    /// ```swift
    /// let metrics = SchedulerMetrics()
    /// metrics.collect()  // before each scrape; or as a service of a group, at intervals
    /// ```
    ///
    /// Operations pay nothing. Times of waits and runs are recorded only while the `Recorder` is on. The work of a scheduler
    /// between the last reading and its end is not reported.
    public final class SchedulerMetrics: Service {
        private let factory: any MetricsFactory
        private let interval: Duration
        private let clock: any Clock<Duration>
        /// nil: a collection is in progress.
        private let state: Guarded<State?>

        /// Creates the metrics; nothing is read yet.
        ///
        /// - Parameters:
        ///   - factory: creates the metrics; nil: the `MetricsSystem.factory` at the time of this call.
        ///   - interval: the time between two readings, if run as a service.
        ///   - clock: the clock that measures the interval.
        /// - Precondition: the interval is positive.
        public init(
            _ factory: (any MetricsFactory)? = nil, interval: Duration = .seconds(10),
            clock: any Clock<Duration> = ContinuousClock()
        ) {
            precondition(interval > .zero, "SchedulerMetrics: the interval \(interval) is not positive")
            self.factory = factory ?? MetricsSystem.factory
            self.interval = interval
            self.clock = clock
            state = Guarded(State())
        }

        /// Reads all schedulers, and sets the metrics. May be called from any thread; does nothing while another call is in
        /// progress.
        ///
        /// - Returns: whether this call has read the schedulers.
        /// - Complexity: about 20 µs for each worker; while the recorder is on, O(n log n) in the number of its events.
        @discardableResult
        public func collect() -> Bool {
            guard var taken = state.take() else { return false }
            taken.tell(Reading.now(), factory)
            taken.tellTimes(factory)
            state.withLock { $0 = taken }
            return true
        }

        /// Collects at intervals, and once more when the group shuts down.
        ///
        /// - Throws: a `CancellationError` when its task is cancelled.
        public func run() async throws {
            try? await cancelWhenGracefulShutdown {
                while !Task.isCancelled {
                    self.collect()
                    try await self.clock.sleep(for: self.interval)
                }
            }
            try Task.checkCancellation()
            collect()
        }
    }

    extension SchedulerMetrics {
        /// The last reading, and the metrics created so far.
        private struct State: Sendable {
            private var totals: [Int: [Series: Int]] = [:]
            private var times = RecordedTimes()
            private var counters: [Series: Counter] = [:]
            private var meters: [Series: Meter] = [:]
            private var timers: [SchedulerMetric: CoreMetrics.Timer] = [:]

            mutating func tell(_ reading: Reading, _ factory: any MetricsFactory) {
                for (id, series) in reading.totals {
                    for (series, value) in series {
                        let more = value - (totals[id]?[series] ?? 0)
                        // Also if nothing was added, so the series exists from the beginning.
                        counter(series, factory).increment(by: max(0, more))
                    }
                }
                totals = reading.totals
                for (series, value) in reading.gauges { meter(series, factory).set(value) }
                for (series, meter) in meters where reading.gauges[series] == nil {
                    meter.destroy()  // its scheduler is gone
                    meters[series] = nil
                }
            }

            mutating func tellTimes(_ factory: any MetricsFactory) {
                let (waits, runs) = times.next()
                for wait in waits { timer(.wait, factory).recordNanoseconds(wait) }
                for run in runs { timer(.run, factory).recordNanoseconds(run) }
            }

            private mutating func counter(_ series: Series, _ factory: any MetricsFactory) -> Counter {
                if let counter = counters[series] { return counter }
                let made = Counter(
                    label: series.metric.rawValue, dimensions: series.dimensions, factory: factory)
                counters[series] = made
                return made
            }

            private mutating func meter(_ series: Series, _ factory: any MetricsFactory) -> Meter {
                if let meter = meters[series] { return meter }
                let made = Meter(
                    label: series.metric.rawValue, dimensions: series.dimensions, factory: factory)
                meters[series] = made
                return made
            }

            private mutating func timer(_ metric: SchedulerMetric, _ factory: any MetricsFactory)
                -> CoreMetrics.Timer
            {
                if let timer = timers[metric] { return timer }
                let made = CoreMetrics.Timer(
                    label: metric.rawValue, dimensions: [], preferredDisplayUnit: .seconds, factory: factory)
                timers[metric] = made
                return made
            }
        }
    }
#endif
