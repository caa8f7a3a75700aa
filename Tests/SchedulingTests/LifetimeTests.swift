// Threads and schedulers come and go: their resources are returned.

import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

extension Stress {
    @Suite(.inTurn) struct Lifetime {
        @Test func `operations of short-lived threads all run, and their memory is reclaimed`() throws {
            try withScheduler(.workers(2)) { scheduler in
                let rounds = scaled(1000)
                let runs = Runs(rounds * 10)
                let counter = try CompletionCounter()
                for round in 0..<rounds {
                    _ = concurrently(10) { thread in
                        do {
                            try scheduler.submit(in: counter) { runs.note(round * 10 + thread) }
                        } catch { Issue.record(error) }
                    }
                }
                #expect(counter.wait(timeout: .seconds(20)) == .completed)
                #expect(runs.areExactlyOnce)
                #expect(
                    eventually {
                        let statistics = scheduler.statistics
                        return statistics.retired > rounds && statistics.reclaimed == statistics.retired
                    })
            }
        }

        /// In its own process, because its memory is measured.
        @Test(.enabled(if: !isThreadSanitized && !isAddressSanitized))
        func `short-lived threads do not make the process grow`()
            async
        {
            await #expect(processExitsWith: .success) { try measureGrowth() }
        }

        /// A reader elsewhere delays reclamation, but not the scheduler's end: retired memory is freed
        /// when the reader has left.
        @Test func `a scheduler ends while a thread reads another one`() throws {
            try whileReading {
                for _ in 0..<3 {
                    let scheduler = try Scheduler(.init(workers: 1))
                    try scheduler.setWorkers(3)
                    let counter = try CompletionCounter()
                    for _ in 0..<1000 { try scheduler.submit(in: counter) {} }
                    counter.wait()
                    try scheduler.setWorkers(1)
                    try scheduler.shutdown()
                }
            }
        }

        @Test func `threads that outlive their schedulers release them`() throws {
            let outcomes = concurrently(4) { _ -> Int in
                var completed = 0
                do {
                    for _ in 0..<scaled(50) {
                        try withScheduler(.workers(1)) { scheduler in
                            let counter = try CompletionCounter()
                            try scheduler.submit(in: counter) {}
                            if counter.wait(timeout: .seconds(20)) == .completed { completed += 1 }
                        }
                    }
                } catch { Issue.record(error) }
                return completed
            }
            #expect(outcomes == Array(repeating: scaled(50), count: 4))
        }

        /// In its own process, so that all its threads and files are this test's.
        @Test(.watched(.seconds(240)))
        func `a thousand schedulers leave no thread and no file behind`() async {
            await #expect(processExitsWith: .success) { try restartOften() }
        }

        @Test func `a thread uses many schedulers at once`() throws {
            let schedulers = try (0..<40).map { _ in try Scheduler(.workers(1)) }
            let runs = Runs(40 * 50)
            let counter = try CompletionCounter()
            for index in 0..<40 * 50 {
                try schedulers[index % 40].submit(in: counter) { runs.note(index) }
            }
            #expect(counter.wait(timeout: .seconds(20)) == .completed)
            for scheduler in schedulers { try scheduler.shutdown() }
            #expect(runs.areExactlyOnce)
        }
    }
}

private func residentPages() -> Int {
    let file = open("/proc/self/statm", O_RDONLY)
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 256)
    let length = read(file, &bytes, bytes.count)
    let fields = String(decoding: bytes[..<max(0, length)], as: UTF8.self).split(separator: " ")
    return Int(fields[1]) ?? 0
}

private func measureGrowth() throws {
    try withScheduler(.workers(2)) { scheduler in
        func use(_ rounds: Int) throws {
            for _ in 0..<rounds {
                _ = concurrently(8) { _ in try? scheduler.submit {} }
            }
            try #require(
                eventually {
                    let statistics = scheduler.statistics
                    return statistics.pending == 0 && statistics.reclaimed == statistics.retired
                })
        }
        try use(scaled(200))  // fills what the allocator and the registry keep
        let before = residentPages()
        try use(scaled(600))
        let pages = residentPages() - before
        #expect(pages < 1024, "4800 threads left \(pages) pages behind")
    }
}

private func restartOften() throws {
    func restart() throws {
        try withScheduler(.workers(2)) { scheduler in
            for _ in 0..<10 { try scheduler.submit {} }
        }
    }
    func files() throws -> Int { try #require(names(in: "/proc/self/fd")).count }
    try restart()  // the reclaiming thread stays
    try #require(eventually { KernelThread.named("csched").isEmpty })
    let threads = KernelThread.all().count
    let filesBefore = try files()
    for _ in 0..<scaled(1000) { try restart() }
    #expect(eventually { KernelThread.all().count <= threads })
    #expect(try files() == filesBefore)
}
