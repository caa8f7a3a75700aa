// Adoption.swift - makes a task without an executor preference prefer the executor of an exploration, so `Task { }` in code
// under test behaves like a child task: its sleeps, its yields, and its exits from an actor are steps.
//
// The runtime has no public means for this. An experiment learns once, from one task, how to recognize a task that has not
// begun, and then tries adoption on another. If that fails, no task is adopted, and `docs/exploration.md` lists what is not
// explored then.

import CTaskHooks
import CompositeOperationsBasics

enum Adoption {
    /// Runs the experiment at the first call.
    static func learn() { _ = isKnown }

    #if os(Linux) && compiler(>=6.3) && compiler(<6.4)
        /// Whether tasks are adopted.
        static let isKnown: Bool = {
            let catcher = Catcher()
            var taker = task_hooks_taker()
            taker.context = Unmanaged.passUnretained(catcher).toOpaque()
            taker.take = { context, job in
                Unmanaged<Catcher>.fromOpaque(context!).takeUnretainedValue()
                    .enqueue(ExecutorJob(unsafeBitCast(job!, to: UnownedJob.self)))
            }
            taker.task_executor = unsafeBitCast(
                catcher.asUnownedTaskExecutor(), to: task_hooks_executor.self)
            let outer = task_hooks_get_taker()
            defer { task_hooks_set_taker(outer) }
            return withUnsafePointer(to: taker) { taker in
                task_hooks_set_taker(taker)
                let isKnown = catcher.adoptsTask()
                if !isKnown { task_hooks_learn(nil) }
                return isKnown
            }
        }()

        /// Collects the jobs of tasks that this thread creates.
        private final class Catcher: TaskExecutor {
            private let jobs = Locked<[UnownedJob]>([])

            func enqueue(_ job: consuming ExecutorJob) {
                let job = UnownedJob(job)
                jobs.withLock { $0.append(job) }
            }

            /// Creates two tasks, learns from the first, and adopts the second.
            ///
            /// - Returns: whether the second task then preferred this executor.
            func adoptsTask() -> Bool {
                let isAdopted = Locked(false)
                for isSecond in [false, true] {
                    Task.detached {
                        let executor = withUnsafeCurrentTask { $0?.unownedTaskExecutor }
                        isAdopted.withLock { $0 = executor == self.asUnownedTaskExecutor() }
                    }
                    var isNew = true
                    // Runs all jobs, including those that continue a task without a preference.
                    while let job = jobs.withLock({ $0.popLast() }) {
                        let address = unsafeBitCast(job, to: UnsafeMutableRawPointer.self)
                        if isNew, isSecond { _ = task_hooks_adopt(address) }
                        if isNew, !isSecond { task_hooks_learn(address) }
                        isNew = false
                        job.runSynchronously(on: asUnownedTaskExecutor())
                    }
                }
                return isAdopted.withLock { $0 }
            }
        }
    #else
        static let isKnown = false
    #endif
}

/// The executor of adopted tasks, which were created without an executor preference. On an exploring thread, each job is a
/// step of that exploration; on any other thread it is passed to the global executor, as without adoption: the task may be
/// part of the program, which outlives explorations.
final class AdoptedTasksPlace: TaskExecutor {
    static let ofAll = AdoptedTasksPlace()
    private init() {}

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if let explorer = Explorer.current {
            explorer.append(job, in: .adopted)
        } else {
            task_hooks_enqueue_global(unsafeBitCast(job, to: UnsafeMutableRawPointer.self))
        }
    }
}
