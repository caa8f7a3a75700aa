// TaskLaws.swift - K: the tasks of a task executor.

import Glibc
import PropertyTesting

extension Law {
    static let tasks: [Law] = [
        Law(
            "K1", "Each task ends.", needs: [.tasks],
            isOfProgress: true,
            saboteur: .ofJobs("keeps every tenth job") { acts, executor, job in
                if acts.every(10) { acts.atEnd { executor.enqueue(job) } } else { executor.enqueue(job) }
            }
        ) { trial in
            let (executor, latch) = (trial.instance.taskExecutor!, Latch(trial.load.total))
            trial.atEnd { _ = latch.wait(timeout: trial.limit) }
            trial.fromAllThreads { number in
                Task.detached(executorPreference: executor) {
                    trial.tracer.note("task \(number) begins")
                    trial.load.spend(number)
                    await Task.yield()
                    trial.tracer.note("task \(number) ends")
                    latch.leave()
                }
            }
            try trial.wait(for: latch, "tasks that were to end")
        },

        Law(
            "K2", "The code of a task, and of its children, is run by its executor.",
            needs: [.tasks, .knowsItself],
            saboteur: .ofJobs("runs every third job on a thread of its own") { acts, executor, job in
                guard acts.every(3) else { return executor.enqueue(job) }
                start { job.runSynchronously(on: executor.asUnownedTaskExecutor()) }
            }
        ) { trial in
            let (executor, isHere) = (trial.instance.taskExecutor!, trial.instance.isHere!)
            let (outside, latch) = (Locked(0), Latch(trial.load.total))
            let look: @Sendable () -> Void = { if !isHere() { outside.withLock { $0 += 1 } } }
            trial.fromAllThreads { number in
                Task.detached(executorPreference: executor) {
                    look()
                    await Task.yield()
                    look()
                    await withTaskGroup(of: Void.self) { group in
                        for _ in 0..<2 { group.addTask { look() } }
                    }
                    look()
                    latch.leave()
                }
            }
            try trial.wait(for: latch, "tasks that were to end")
            let count = outside.withLock { $0 }
            try trial.require(count == 0, "\(count) parts of tasks ran elsewhere")
        },

        Law(
            "K3", "A task that another thread resumes goes on.", needs: [.tasks],
            isOfProgress: true,
            saboteur: .ofJobs("keeps every third job") { acts, executor, job in
                if acts.every(3) { acts.atEnd { executor.enqueue(job) } } else { executor.enqueue(job) }
            }
        ) { trial in
            let (executor, latch) = (trial.instance.taskExecutor!, Latch(trial.load.total))
            let (isLost, begun, ended) = (Locked(false), Locked(0), Locked(0))
            trial.atEnd {
                let end = ContinuousClock.now + trial.limit
                while begun.withLock({ $0 }) > ended.withLock({ $0 }), ContinuousClock.now < end {
                    usleep(100)
                }
            }
            trial.fromAllThreads { _ in
                if isLost.withLock({ $0 }) { return }
                begun.withLock { $0 += 1 }
                let waiting = Locked<CheckedContinuation<Void, Never>?>(nil)
                let isWaiting = Latch(1)
                Task.detached(executorPreference: executor) {
                    await withCheckedContinuation { continuation in
                        waiting.withLock { $0 = continuation }
                        isWaiting.leave()
                    }
                    latch.leave()
                    ended.withLock { $0 += 1 }
                }
                guard isWaiting.wait(timeout: trial.limit) else {
                    // The task might not suspend until after this wait has timed out. Its continuation is then
                    // resumed at the end.
                    trial.atEnd {
                        if isWaiting.wait(timeout: trial.limit) { waiting.withLock { $0 }?.resume() }
                    }
                    return isLost.withLock { $0 = true }
                }
                waiting.withLock { $0 }?.resume()
            }
            try trial.wait(for: latch, "tasks that a thread resumes were to end")
        },

        Law(
            "K4", "Tasks that yield again and again let others have their turn.",
            needs: [.tasks, .claim(.fair)],
            isOfProgress: true,
            saboteur: Saboteur("runs the newest job first") { instance, acts in
                let (stack, original) = (Locked<[UnownedJob]>([]), instance.taskExecutor!)
                let submit = instance.submit
                let first = Locked(0)
                instance.taskExecutor = SabotagedExecutor { job in
                    // The first 200 jobs pass unchanged: the order matters only once the yielding tasks have begun.
                    let isFirst = first.withLock { first in
                        first += 1
                        return first <= 200
                    }
                    if isFirst { return original.enqueue(job) }
                    stack.withLock { $0.append(job) }
                    submit {
                        let last = stack.withLock { $0.popLast() }
                        acts.act()
                        last?.runSynchronously(on: original.asUnownedTaskExecutor())
                    }
                }
            }
        ) { trial in
            let (executor, isOver) = (trial.instance.taskExecutor!, Locked(false))
            let (spinning, victims, ended) = (Latch(8), Latch(8), Latch(16))
            defer { isOver.withLock { $0 = true } }
            trial.atEnd { _ = ended.wait(timeout: trial.limit) }
            for _ in 0..<8 {
                Task.detached(executorPreference: executor) {
                    spinning.leave()
                    while !isOver.withLock({ $0 }) { await Task.yield() }
                    ended.leave()
                }
            }
            try trial.wait(for: spinning, "tasks that yield were to begin")
            for _ in 0..<8 {
                Task.detached(executorPreference: executor) {
                    await Task.yield()
                    victims.leave()
                    ended.leave()
                }
            }
            try trial.wait(for: victims, "beside tasks that yield, others were to end")
        },
    ]
}
