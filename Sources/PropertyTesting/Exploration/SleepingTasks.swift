// SleepingTasks.swift - how `Task.sleep` reaches an explorer: the library calls the executor of the task through an
// experimental interface. Where that interface is missing, another thread makes sleeping tasks ready, and the
// exploration reports that.

#if os(Linux) && compiler(>=6.3) && compiler(<6.4)
    @_spi(ExperimentalCustomExecutors) @_spi(ExperimentalScheduling) internal import _Concurrency

    extension Explorer: SchedulingExecutor {
        func enqueue<C: Clock>(
            _ job: consuming ExecutorJob, after delay: C.Duration, tolerance: C.Duration?, clock: C
        ) { sleep(UnownedJob(job), for: delay as? Duration ?? .zero) }

        func enqueue<C: Clock>(
            _ job: consuming ExecutorJob, at instant: C.Instant, tolerance: C.Duration?, clock: C
        ) { sleep(UnownedJob(job), for: clock.now.duration(to: instant) as? Duration ?? .zero) }
    }

    extension MainActorsPlace: SchedulingExecutor {
        func enqueue<C: Clock>(
            _ job: consuming ExecutorJob, after delay: C.Duration, tolerance: C.Duration?, clock: C
        ) { explorer.enqueue(job, after: delay, tolerance: tolerance, clock: clock) }

        func enqueue<C: Clock>(
            _ job: consuming ExecutorJob, at instant: C.Instant, tolerance: C.Duration?, clock: C
        ) { explorer.enqueue(job, at: instant, tolerance: tolerance, clock: clock) }
    }

    extension AdoptedTasksPlace: SchedulingExecutor {
        func enqueue<C: Clock>(
            _ job: consuming ExecutorJob, after delay: C.Duration, tolerance: C.Duration?, clock: C
        ) { timed.enqueue(job, after: delay, tolerance: tolerance, clock: clock) }

        func enqueue<C: Clock>(
            _ job: consuming ExecutorJob, at instant: C.Instant, tolerance: C.Duration?, clock: C
        ) { timed.enqueue(job, at: instant, tolerance: tolerance, clock: clock) }

        /// The executor that times a sleep: the exploration, or outside one the runtime's own executor.
        private var timed: any SchedulingExecutor { Explorer.current ?? Self.elsewhere }

        private static let elsewhere: any SchedulingExecutor = {
            guard let executor = PlatformExecutorFactory.defaultExecutor as? any SchedulingExecutor else {
                fatalError("explore: the runtime's own executor has no timers")
            }
            return executor
        }()
    }
#endif
