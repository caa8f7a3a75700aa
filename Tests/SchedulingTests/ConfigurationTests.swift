// The configuration of a scheduler: the number of workers, the environment, names, and refusals.

import Glibc
import PropertyTesting
import Scheduling
import PropertyTestingSupport
import Testing

@Suite(.inTurn) struct ConfigurationTests {
    @Test(arguments: [0, 257, -1, Int.max, Int.min, Int(UInt32.max)])
    func `an invalid number of workers is refused`(workers: Int) throws {
        #expect(code { _ = try Scheduler(.workers(workers)) } == .invalidWorkers)
        let scheduler = try Scheduler(.workers(1))
        #expect(code { try scheduler.setWorkers(workers) } == .invalidWorkers)
        #expect(scheduler.workers == 1)
    }

    @Test(arguments: [0, -1, Int.min])
    func `an invalid capacity is refused`(capacity: Int) {
        #expect(code { _ = try Scheduler(.init(workers: 1, capacity: capacity)) } == .invalidCapacity)
    }

    @Test(arguments: [1, 256])
    func `the limits of the number of workers are valid`(workers: Int) throws {
        let runs = Runs(1000)
        try withScheduler(.workers(workers)) { scheduler in
            #expect(scheduler.workers == workers)
            for index in 0..<1000 { try scheduler.submit { runs.note(index) } }
        }
        #expect(runs.areExactlyOnce)
    }

    @Test(arguments: ["name", "a name that is longer than the kernel's", "", "grün"])
    func `threads are named after their scheduler`(name: String) throws {
        try withScheduler(.init(workers: 1, name: name)) { _ in
            let shown = String(decoding: Array(name.utf8.prefix(4)), as: UTF8.self)
            #expect(eventually { !KernelThread.named(shown).isEmpty })
        }
    }

    @Test func `the environment decides the number of workers`() async {
        await #expect(processExitsWith: .success) {
            setenv("CSCHED_WORKERS", "3", 1)
            let (wished, explicit) = try (Scheduler(), Scheduler(.workers(2)))
            #expect(wished.workers == 3)
            #expect(explicit.workers == 2)
        }
    }

    @Test func `by default there is at least one worker, and at most one per CPU`() async {
        await #expect(processExitsWith: .success) {
            unsetenv("CSCHED_WORKERS")
            let workers = try Scheduler().workers
            #expect((1...sysconf(Int32(_SC_NPROCESSORS_CONF))).contains(workers))
        }
    }

    /// Several threads read the environment at the same time.
    @Test func `an invalid environment is reported once, and the default is used`() async {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            unsetenv("CSCHED_WORKERS")
            let automatic = try Scheduler().workers
            for wish in ["banana", "0", "257", "-1", "3 ", "3x", "1e2", "99999999999999999999999"] {
                setenv("CSCHED_WORKERS", wish, 1)
                let found = concurrently(4) { _ in try? Scheduler().workers }
                #expect(found == Array(repeating: automatic, count: 4), "\(wish)")
                #expect(try Scheduler(.workers(1)).workers == 1)
            }
            #expect(Scheduler.shared.workers == automatic)
        }
        let told = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        let sentences = told.split(separator: "\n").filter { $0.contains("CSCHED_WORKERS in the env") }
        #expect(sentences.count == 1)
        #expect(sentences.first?.hasSuffix("the number of CPUs is used instead.") ?? false)
    }

    @Test func `a valid or empty environment is not reported`() async {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            for wish in ["1", "256", ""] {
                setenv("CSCHED_WORKERS", wish, 1)
                _ = try Scheduler()
            }
        }
        let told = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(!told.contains("CSCHED_WORKERS"))
    }

    @Test func `every error describes itself in a sentence`() {
        for code in SchedulerError.Code.allCases {
            let text = "\(SchedulerError(code))"
            #expect(text.hasSuffix(".") && text.count { $0 == "." } == 1)
        }
    }
}
