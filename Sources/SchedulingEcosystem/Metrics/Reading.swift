// Reading.swift - the state of the process's schedulers at one moment, as metric values.

#if Ecosystem
    internal import Observability

    /// A metric with the values of its dimensions.
    struct Series: Hashable {
        let metric: SchedulerMetric
        let values: [String]

        /// As swift-metrics expects them.
        var dimensions: [(String, String)] { Array(zip(metric.dimensions, values)) }
    }

    /// Values, summed over schedulers of the same name.
    struct Reading {
        /// Current values.
        private(set) var gauges: [Series: Int] = [:]
        /// Totals since each scheduler was created, by the scheduler's ID.
        private(set) var totals: [Int: [Series: Int]] = [:]

        /// Reads all schedulers now.
        static func now() -> Reading {
            var reading = Reading()
            for state in SchedulerState.all() { reading.add(state) }
            for counts in SchedulerCounts.all() { reading.add(counts) }
            return reading
        }

        private mutating func add(_ state: SchedulerState) {
            for queue in state.queues {
                gauge(.waiting, [state.name, queue.priority], queue.waiting)
                total(state.id, .submitted, [state.name, queue.priority], queue.submitted)
            }
            for activity in ["runs", "blocks", "searches", "sleeps", "reserved"] {
                let count = state.workers.count { $0.activity.rawValue == activity }
                gauge(.workers, [state.name, activity], count)
            }
            gauge(.waitingInWorkers, [state.name], state.workers.reduce(0) { $0 + $1.waiting })
            gauge(.suspended, [state.name], state.isSuspended ? 1 : 0, atMost: 1)
            gauge(.closing, [state.name], state.isClosing ? 1 : 0, atMost: 1)
        }

        private mutating func add(_ counts: SchedulerCounts) {
            let figures: [(SchedulerMetric, Int)] = [
                (.executed, counts.executed), (.cancelled, counts.cancelled), (.stolen, counts.stolen),
                (.parked, counts.parked), (.woken, counts.woken), (.replaced, counts.replaced),
                (.exhausted, counts.exhausted),
            ]
            for (metric, value) in figures { total(counts.id, metric, [counts.name], value) }
        }

        private mutating func gauge(
            _ metric: SchedulerMetric, _ values: [String], _ value: Int, atMost most: Int = .max
        ) {
            let series = Series(metric: metric, values: values)
            gauges[series] = min(most, gauges[series, default: 0] + value)
        }

        private mutating func total(_ id: Int, _ metric: SchedulerMetric, _ values: [String], _ value: Int) {
            totals[id, default: [:]][Series(metric: metric, values: values)] = value
        }
    }
#endif
