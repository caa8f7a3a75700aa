// The default executor of a program. The library's executor factories are the only door to it, and they are
// experimental system interface: so this target is apart, and programs that do without never touch them.
//
// A type alias `DefaultExecutorFactory` in the program, which the proposal has, is not looked at by the
// compiler 6.3. Its function `_createExecutors` works, and needs no flag.

#if os(Linux) && compiler(>=6.3) && compiler(<6.4)
    internal import CompositeOperationsBasics
    public import Scheduling
    internal import Synchronization
    @_spi(ExperimentalCustomExecutors) @_spi(ExperimentalScheduling) internal import _Concurrency

    extension Scheduler {
        /// Makes this scheduler the default executor of the program: one line, the first of the program.
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
        /// From then on its workers run whatever ran on the runtime's own pool: `Task { }` outside of actors
        /// and `Task.detached`, child tasks and task groups, `@concurrent` functions, actors without an
        /// executor of their own, and tasks that prefer no executor (`withTaskExecutorPreference(nil)`).
        /// `Task.sleep` and clocks are timed as before, and the task goes on here. The main actor stays on
        /// the main thread; executors that tasks prefer, and those of actors, stay as they are; closures of
        /// Dispatch are none of this.
        ///
        /// Jobs that were enqueued before the call end where they are. Call when no other thread runs tasks:
        /// the runtime does not synchronise the change. The scheduler lives until the process ends. If it is
        /// shut down (from outside of tasks: such a task would wait for itself), jobs run on
        /// `Scheduler.shared`.
        ///
        /// The means are experimental interface of the library of Swift 6.3, for Linux. With another compiler
        /// this function is unavailable until it has been tried there; no flag is needed, and nothing
        /// experimental in the program's own code.
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

    /// Takes the jobs of tasks and actors that have no executor of their own.
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
        // A trampoline is a job that enqueues another one here when its time has come.

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
            *, unavailable, message: "Tried with Swift 6.3 on Linux alone: the means are experimental."
        )
        public func installAsDefaultExecutor() { fatalError("unavailable") }
    }
#endif
