// SchedulerMetric.swift - the table of metrics: each is listed once here, and once in the article; a test compares
// the two.

#if Ecosystem
    /// A metric that ``SchedulerMetrics`` emits.
    ///
    /// Schedulers of the same name count as one: their figures are summed.
    public enum SchedulerMetric: String, CaseIterable, Sendable {
        /// Operations from outside, by priority.
        case submitted = "scheduler_submitted_total"
        /// Bodies that have returned.
        case executed = "scheduler_executed_total"
        /// Operations that a shutdown cancelled.
        case cancelled = "scheduler_cancelled_total"
        /// Operations that a worker took from another worker.
        case stolen = "scheduler_stolen_total"
        /// Times that a worker went to sleep.
        case parked = "scheduler_parked_total"
        /// Wake-ups that were sent.
        case woken = "scheduler_woken_total"
        /// Workers that blocked and were replaced by another worker.
        case replaced = "scheduler_replaced_total"
        /// Times a spare worker was needed beyond the limit.
        case exhausted = "scheduler_exhausted_total"
        /// Operations from outside that wait for a worker, by priority.
        case waiting = "scheduler_waiting"
        /// Operations in the queues of workers.
        case waitingInWorkers = "scheduler_waiting_in_workers"
        /// Workers, by activity.
        case workers = "scheduler_workers"
        /// 1 if the scheduler is suspended, else 0.
        case suspended = "scheduler_suspended"
        /// 1 if the scheduler no longer accepts operations from outside, else 0.
        case closing = "scheduler_closing"
        /// How long operations waited before they began; only while the recorder is on.
        case wait = "scheduler_wait_seconds"
        /// How long bodies took; only while the recorder is on.
        case run = "scheduler_run_seconds"

        /// Kinds of metrics, as in swift-metrics.
        public enum Kind: String, Sendable {
            /// A number that grows.
            case counter
            /// A current value: a `Meter`.
            case gauge
            /// How long something took: a `Timer`.
            case timer
        }

        /// The kind of the metric.
        public var kind: Kind {
            switch self {
            case .submitted, .executed, .cancelled, .stolen, .parked, .woken, .replaced, .exhausted: .counter
            case .waiting, .waitingInWorkers, .workers, .suspended, .closing: .gauge
            case .wait, .run: .timer
            }
        }

        /// The unit of its values.
        public var unit: String {
            switch self {
            case .submitted, .executed, .cancelled, .stolen, .waiting, .waitingInWorkers: "operations"
            case .parked, .woken, .exhausted: "times"
            case .replaced, .workers: "workers"
            case .suspended, .closing: "0 or 1"
            case .wait, .run: "seconds"
            }
        }

        /// The names of its dimensions, in their order.
        public var dimensions: [String] {
            switch self {
            case .submitted, .waiting: ["scheduler", "priority"]
            case .workers: ["scheduler", "activity"]
            case .wait, .run: []
            default: ["scheduler"]
            }
        }
    }
#endif
