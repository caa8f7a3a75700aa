// A worker that leaves while its scheduler is shut down runs what still waits in its deque. Those operations must find
// everything as on any other worker.

import PropertyTesting
import Scheduling
import PropertyTestingSupport
import Testing

@Suite(.inTurn) struct LeavingWorkerTests {
    @Test func `work run by a leaving worker in a shutdown may submit, and knows its scheduler`() throws {
        let scheduler = try Scheduler(.init(workers: 2, name: "leaver-t"))
        let (ready, other, leave, end) = (Gate(), Gate(), Gate(), Gate())
        let submitted = Count()
        let refused = Count()
        let strangers = Count()
        let grandchildren = Count()
        let bodies = Count()
        // A body on each worker. The body on the second worker, which will leave, submits the operations that wait in
        // its deque. The first worker is blocked, and may be replaced before the second has taken anything; then
        // another body is submitted. On a slow machine the second worker also takes a second body when it continues;
        // that body submits nothing.
        repeat {
            try scheduler.submit {
                guard KernelThread.named("leaver-t-1").contains(where: { $0.id == KernelThread.current.id })
                else {
                    other.open()
                    return end.wait()
                }
                guard bodies.add() == 1 else { return }
                for _ in 0..<2 {
                    let refusal = code {
                        try scheduler.submit {
                            if Scheduler.current !== scheduler { strangers.add() }
                            if code({ try scheduler.submit { grandchildren.add() } }) != nil { refused.add() }
                            submitted.add()
                        }
                    }
                    #expect(refusal == nil)
                }
                ready.open()
                leave.wait()
            }
        } while !ready.wait(timeout: .milliseconds(50))
        try scheduler.submit {
            other.open()
            end.wait()
        }
        other.wait()
        try scheduler.setWorkers(1)
        _ = concurrently(2) { thread in
            if thread == 0 { return code { try scheduler.shutdown() } }
            #expect(eventually { code { try scheduler.submit {} } == .closed })
            leave.open()
            #expect(eventually { submitted.value == 2 })
            end.open()
            return nil
        }
        #expect(refused.value == 0)
        #expect(grandchildren.value == 2)
        #expect(strangers.value == 0)
    }
}
