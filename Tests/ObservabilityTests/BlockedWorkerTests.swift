import Dispatch
import Observability
import PropertyTestingSupport
import Scheduling
import Testing

extension OneRecorder {
    @Suite struct BlockedWorkerTests {
        private func submitBlocking(to scheduler: Scheduler, until leave: DispatchSemaphore) throws {
            let began = DispatchSemaphore(value: 0)
            try scheduler.submit {
                Scheduler.blocking {
                    began.signal()
                    leave.wait()
                }
            }
            began.wait()
        }

        @Test
        func
            `a blocked worker is named, with what it runs when that is recorded, and where it is when asked`()
            throws
        {
            Recorder.start()
            let scheduler = try Scheduler(.init(workers: 1, name: "dumped"))
            let leave = DispatchSemaphore(value: 0)
            try submitBlocking(to: scheduler, until: leave)
            let dump = Inspection.dump(stacks: true)
            Recorder.stop()
            let plain = Inspection.dump()
            leave.signal()
            try scheduler.shutdown()
            let worker = try #require(dump.schedulers.first { $0.name == "dumped" }?.workers.first)
            #expect(worker.activity == .blocks)
            let function = try #require(worker.body?.function)
            #expect(function.hasPrefix("closure #1 ") && function.contains("submitBlocking"))
            #expect(
                try #require(worker.stack?.functions).contains { $0.contains("submitBlocking") }, "\(dump)")
            let problem = try #require(
                dump.problems.first { $0.kind == .blockedWorker && $0.text.contains("'dumped'") })
            #expect(
                problem.text.hasPrefix(
                    "worker 0 of scheduler 'dumped', thread \(worker.thread), is blocked in a body, closure #1 "
                ))
            #expect(dump.description.contains("\n  scheduler 'dumped': nothing waits\n"))
            let again = try #require(plain.schedulers.first { $0.name == "dumped" }?.workers.first)
            #expect(again.body == nil && again.stack == nil)
        }
    }
}
