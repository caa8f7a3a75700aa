// The default executor of a program. The library's executor factories are the only way to set it, and they
// are experimental system interfaces; hence this separate target: programs that do not use it never touch
// these interfaces.
//
// The proposal specifies a type alias `DefaultExecutorFactory` in the program, but compiler 6.3 ignores it.
// The standard library's function `_createExecutors` works, and needs no flag.

#if os(Linux) && compiler(>=6.3) && compiler(<6.4)
    internal import CompositeOperationsBasics
    public import Scheduling
    internal import Synchronization
    @_spi(ExperimentalCustomExecutors) @_spi(ExperimentalScheduling) internal import _Concurrency

    extension Scheduler {
        /// Makes this scheduler the default executor of the program. Call this first in the program.
        ///
        /// ```swift
        /// import Scheduling
        /// import SchedulingDefaultExecutor
        ///
        /// @main struct Server {
        ///     static func main() async throws {
        ///         Scheduler.shared.installAsDefaultExecutor()
        ///         try await serve()
        ///     }
        /// }
        /// ```
        ///
        /// From then on, the scheduler's workers run everything that ran on the runtime's own pool:
        /// `Task { }` outside of actors and `Task.detached`, child tasks and task groups, `@concurrent`
        /// functions, actors without their own executor, and tasks that prefer no executor
        /// (`withTaskExecutorPreference(nil)`). `Task.sleep` and clocks use the runtime's timers as before;
        /// the task then resumes on this scheduler. The main actor stays on the main thread. Executors that
        /// tasks prefer, and those of actors, are unchanged. Dispatch closures are not affected.
        ///
        /// Jobs enqueued before the call run on the executor they were enqueued on. Call this while no other
        /// thread runs tasks, because the runtime does not synchronise the change. The scheduler lives until
        /// the process ends. If it is shut down (from outside of tasks, since a task would wait for itself),
        /// jobs run on `Scheduler.shared`.
        ///
        /// The implementation uses an experimental interface of the Swift 6.3 library for Linux. With another
        /// compiler, this function is unavailable until it has been tested there. No flag is needed, and the
        /// program's own code uses nothing experimental.
        ///
        /// - Precondition: the first call in the process.
        public func installAsDefaultExecutor() {
            let isFirst = installed.withLock { executor in
                defer { executor = executor ?? DefaultExecutor(self) }
                return executor == nil
            }
            demand(isFirst, "Scheduler.installAsDefaultExecutor: called a second time")
            _createExecutors(factory: Factory.self)
        }
    }

    private let installed = Mutex<DefaultExecutor?>(nil)

    private struct Factory: ExecutorFactory {
        static var mainExecutor: any MainExecutor { PlatformExecutorFactory.mainExecutor }
        static var defaultExecutor: any TaskExecutor { installed.withLock(\.self)! }
    }

    /// Runs the jobs of tasks and actors that have no executor of their own.
    private final class DefaultExecutor: TaskExecutor {
        private let scheduler: Scheduler
        /// The timer of sleeping tasks.
        private let clockwork: any SchedulingExecutor

        init(_ scheduler: Scheduler) {
            guard let clockwork = PlatformExecutorFactory.defaultExecutor as? any SchedulingExecutor else {
                fatalError("Scheduler.installAsDefaultExecutor: the runtime's own executor has no timers")
            }
            self.scheduler = scheduler
            self.clockwork = clockwork
        }

        func enqueue(_ job: consuming ExecutorJob) { scheduler.enqueueDefault(UnownedJob(job)) }
    }

    extension DefaultExecutor: SchedulingExecutor {
        // A trampoline is a job that, when it is due, enqueues another job on this executor.

        func enqueue<C: Clock>(
            _ job: consuming ExecutorJob, after delay: C.Duration, tolerance: C.Duration?, clock: C
        ) {
            clockwork.enqueue(
                job.createTrampoline(to: self), after: delay, tolerance: tolerance, clock: clock)
        }

        func enqueue<C: Clock>(
            _ job: consuming ExecutorJob, at instant: C.Instant, tolerance: C.Duration?, clock: C
        ) {
            clockwork.enqueue(job.createTrampoline(to: self), at: instant, tolerance: tolerance, clock: clock)
        }
    }
#else
    public import Scheduling

    extension Scheduler {
        /// Makes this scheduler the default executor of the program.
        @available(
            *, unavailable, message: "Tested only with Swift 6.3 on Linux: it uses experimental features."
        )
        public func installAsDefaultExecutor() { fatalError("unavailable") }
    }
#endif
