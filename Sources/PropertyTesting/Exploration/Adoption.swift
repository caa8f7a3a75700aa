// Adoption.swift - how a task that prefers no executor is made to prefer that of an exploration, so that `Task { }` in code
// under test is what a child task is: its sleeps, its yields, and its way out of an actor are steps.
//
// The runtime has no public means for this. How a task that has not begun is told is learnt from one, once, and whether it is
// adopted then is tried with another one. If it is not, none is, and `docs/exploration.md` says what is not explored then.

import CTaskHooks
import CompositeOperationsBasics

enum Adoption {
    /// Makes the experiment, the first time.
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

        /// Keeps the jobs of tasks that this thread makes.
        private final class Catcher: TaskExecutor {
            private let jobs = Locked<[UnownedJob]>([])

            func enqueue(_ job: consuming ExecutorJob) {
                let job = UnownedJob(job)
                jobs.withLock { $0.append(job) }
            }

            /// Makes two, learns from the first, and adopts the second.
            ///
            /// - Returns: whether that one preferred this then.
            func adoptsTask() -> Bool {
                let isAdopted = Locked(false)
                for isSecond in [false, true] {
                    Task.detached {
                        let executor = withUnsafeCurrentTask { $0?.unownedTaskExecutor }
                        isAdopted.withLock { $0 = executor == self.asUnownedTaskExecutor() }
                    }
                    var isNew = true
                    // Each, also those by which a task without a preference goes on.
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

/// Where the steps of adopted tasks are enqueued: those that were made without a preference of executor. Each is a step of
/// the exploration that goes on on the calling thread; elsewhere it goes where it would be without: the task may be a part
/// of the program, which outlives explorations.
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
