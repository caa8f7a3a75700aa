// StallWatchTests - the thread of a watch, and what it writes by itself.

import CompositeOperationsTestSupport
import Dispatch
import Glibc
import Observability
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Synchronization
import Testing

/// Whether the process has a thread with this kernel ID.
private func isThere(_ thread: pid_t) -> Bool { access("/proc/self/task/\(thread)", F_OK) == 0 }

// The module Glibc does not cover <malloc.h>.
@_silgen_name("mallopt") private func changeAllocator(_ parameter: Int32, _ value: Int32) -> Int32

/// Keeps a worker of a scheduler inside a body while `body` runs.
private func whileOneRuns(_ name: String, _ body: () async -> Void) async {
    let scheduler = try! Scheduler(.init(workers: 1, name: name, spareWorkers: 0))
    let (began, leave) = (Gate(), Gate())
    try! scheduler.submit {
        began.open()
        leave.wait()
    }
    began.wait()
    await body()
    leave.open()
    try! await scheduler.shutdown()
}

@Suite(.inTurn, .serialized) struct StallWatchTests {
    @Test func `an unreferenced watch has no thread, and its thread is not the program's`() async {
        await whileOneRuns("watch-a") {
            let threads = Mail<pid_t>()
            let watch = Locked<StallWatch?>(
                StallWatch(body: .milliseconds(1), wait: .seconds(60)) { stall in
                    guard stall.scheduler == "watch-a" else { return }
                    var mask = sigset_t()
                    pthread_sigmask(SIG_BLOCK, nil, &mask)
                    #expect(sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGUSR1) == 1)
                    threads.send(threadNumber())
                })
            let thread = await threads.next()
            #expect(isThere(thread))
            watch.withLock { $0 = nil }
            #expect(await eventually { !isThere(thread) })
        }
    }

    @Test func `stop waits for a call in flight`() async {
        await whileOneRuns("watch-b") {
            let (telling, leave) = (Gate(), Gate())
            let hasTold = Locked(false)
            let watch = StallWatch(body: .milliseconds(1), wait: .seconds(60)) { stall in
                guard stall.scheduler == "watch-b" else { return }
                telling.open()
                leave.wait()
                hasTold.withLock { $0 = true }
            }
            telling.wait()
            let numbers = Mail<pid_t>()
            let hadTold = Locked<Bool?>(nil)
            let thread = startThread(for: "a test") {
                numbers.send(threadNumber())
                watch.stop()
                hadTold.withLock { $0 = hasTold.withLock { $0 } }
            }
            // The thread sleeps in `stop`; or `stop` has returned, which is wrong.
            let number = await numbers.next()
            #expect(await eventually { threadSleeps(Int(number)) || hadTold.withLock { $0 } != nil })
            leave.open()
            pthread_join(thread, nil)
            #expect(hadTold.withLock { $0 } == true)
        }
    }

    // Memory use under a sanitizer proves nothing.
    @Test(.enabled(if: !isSanitized))
    func `watches leave no thread behind, released or stopped in a report`() async {
        await #expect(processExitsWith: .exitCode(7)) {
            _ = changeAllocator(-8, 1)  // M_ARENA_MAX: otherwise threads leave arenas of 64 MiB each
            await whileOneRuns("watch-c") {
                let before = memoryInUse()
                for _ in 0..<100 { _ = StallWatch { _ in } }
                for _ in 0..<100 {
                    let (own, told) = (Locked<StallWatch?>(nil), Gate())
                    let isThere = Gate()
                    let watch = StallWatch(body: .milliseconds(1), wait: .seconds(60)) { _ in
                        isThere.wait()
                        own.withLock { $0.take() }?.stop()
                        told.open()
                    }
                    own.withLock { $0 = watch }
                    isThere.open()
                    told.wait()
                }
                // A thread has 8 MiB of stack, and some stacks are cached for later threads.
                let isLittle = await eventually { memoryInUse() < before + 400 << 20 }
                precondition(isLittle)
            }
            exit(7)
        }
    }

    @Test func `without a receiver a stall is written to standard error`() async {
        await #expect(processExitsWith: .exitCode(7)) {
            var ends: [Int32] = [0, 0]
            precondition(pipe(&ends) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO)
            let source = ends[0]
            await whileOneRuns("watch-d") {
                let watch = StallWatch(body: .milliseconds(1), wait: .seconds(60))
                var text = ""
                var byte: UInt8 = 0
                while !text.hasSuffix("\n"), read(source, &byte, 1) == 1 {
                    text.unicodeScalars.append(Unicode.Scalar(byte))
                }
                watch.stop()
                guard text.hasPrefix("a body on worker 0 of scheduler 'watch-d', thread ") else { exit(1) }
            }
            exit(7)
        }
    }

    @Test func `an invalid limit for waits traps with a sentence`() async {
        await #expect(processExitsWith: .failure) { _ = StallWatch(wait: .zero) }
    }
}
