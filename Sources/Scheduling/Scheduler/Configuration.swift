internal import CScheduler

extension Scheduler {
    /// The parameters of a new scheduler.
    public struct Configuration: Hashable, Sendable {
        /// The number of workers, 1 to 256.
        ///
        /// If nil, the environment variable `CSCHED_WORKERS` determines the number if it is in that range; otherwise the smaller of
        /// the affinity mask's CPU count and the quota of the process's control group (v2, then v1), rounded up. Any other value of
        /// `CSCHED_WORKERS` is reported on standard error, once.
        public var workers: Int?
        /// The prefix of the threads' names; the first 10 bytes are shown.
        public var name: String
        /// How many operations submitted from outside may wait, at least 1; nil: any number.
        public var capacity: Int?
        /// How a submission from outside is handled when ``capacity`` is reached.
        public var whenFull: CapacityPolicy
        /// How many threads, in addition to the workers, may take the place of workers whose operations block, at least 0.
        ///
        /// A worker that blocks (in a wait, inside ``Scheduler/blocking(_:)``, or undeclared) is replaced by another thread while
        /// operations wait, so that ``workers`` of them run. When no spare worker is left, a waiting operation begins only when a
        /// blocked one continues. If all blocked operations depend on a waiting one, it never begins.
        /// ``Scheduler/Statistics/exhausted`` counts the times that a spare was needed but not available; the first is reported on
        /// standard error.
        public var spareWorkers: Int
        /// Which task-local values an operation sees if its submission specifies no context.
        public var context: Context

        /// Creates a configuration; the defaults suit most programs.
        public init(
            workers: Int? = nil, name: String = "csched", capacity: Int? = nil,
            whenFull: CapacityPolicy = .suspend, spareWorkers: Int = 512, context: Context = .empty
        ) {
            self.workers = workers
            self.name = name
            self.capacity = capacity
            self.whenFull = whenFull
            self.spareWorkers = spareWorkers
            self.context = context
        }
    }

    /// How a submission from outside is handled when as many operations wait as the capacity allows.
    ///
    /// Submissions by a scheduler's own workers are exempt, since a worker would wait for itself.
    public enum CapacityPolicy: Hashable, Sendable, CaseIterable {
        /// Block the calling thread until there is room.
        case suspend
        /// Throw ``SchedulerError/Code/full``.
        case reject
        /// Run the operation in the calling thread.
        case runInCaller
    }
}

extension Scheduler.Configuration {
    /// The C scheduler of this configuration; the caller owns it.
    func createScheduler() throws(SchedulerError) -> OpaquePointer {
        var configuration = unsafe csched_configuration_default()
        if let workers {
            guard let workers = UInt32(exactly: workers), workers <= CSCHED_WORKERS_MAX else {
                throw SchedulerError(.invalidWorkers)
            }
            unsafe configuration.workers = workers
        }
        if let capacity {
            guard let capacity = UInt64(exactly: capacity) else { throw SchedulerError(.invalidCapacity) }
            unsafe configuration.capacity = capacity
        }
        guard let spares = UInt32(exactly: spareWorkers), spares <= 65_536 else {
            throw SchedulerError(.invalidSpareWorkers)
        }
        unsafe configuration.spares = spares
        unsafe configuration.when_full =
            switch whenFull {
            case .suspend: .suspend
            case .reject: .reject
            case .runInCaller: .runInCaller
            }
        var scheduler: OpaquePointer?
        let status = unsafe name.withCString { name in
            unsafe configuration.name = name
            return unsafe csched_scheduler_create(&configuration, &scheduler)
        }
        try status.check()
        unsafe csched_scheduler_isolate(scheduler!) { body, context in unsafe callIsolated(body, context) }
        return unsafe scheduler!
    }
}
