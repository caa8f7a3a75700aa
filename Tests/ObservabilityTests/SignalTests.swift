// SignalTests - what the signals for dumps and stacks change in a process, and what they do not; each test in its own process.

import CompositeOperationsTestSupport
import Dispatch
import Glibc
import Observability
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Synchronization
import Testing

@_silgen_name("fork") private func forked() -> pid_t
/// The kernel's ID of the calling thread.
@_silgen_name("gettid") func threadNumber() -> pid_t

private func ownThread() -> Int { Int(threadNumber()) }

/// Whether the calling thread has a signal unblocked.
private func isLetIn(_ signal: Int32) -> Bool {
    var mask = sigset_t()
    pthread_sigmask(SIG_BLOCK, nil, &mask)
    return sigismember(&mask, signal) == 0
}

private func change(_ how: Int32, _ signal: Int32) {
    var mask = sigset_t()
    sigemptyset(&mask)
    sigaddset(&mask, signal)
    pthread_sigmask(how, &mask, nil)
}

/// Whether a thread sleeps in the kernel.
func threadSleeps(_ thread: Int) -> Bool {
    guard let file = fopen("/proc/self/task/\(thread)/stat", "re") else { return false }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    guard fgets(&line, Int32(line.count), file) != nil else { return false }
    return String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self).contains(
        ") S ")
}

/// Reads a byte on a thread that has `signal` unblocked; `interrupt` sends it the signal. Returns -1 if the call ended
/// early.
private func bytesRead(_ signal: Int32, _ interrupt: (_ number: Int, _ thread: pthread_t) async -> Void) async
    -> Int
{
    var ends: [Int32] = [0, 0]
    precondition(pipe(&ends) == 0)
    let (source, target) = (ends[0], ends[1])
    let (numbers, counts) = (Mail<Int>(), Mail<Int>())
    let thread = startThread(for: "a test") {
        change(SIG_UNBLOCK, signal)
        numbers.send(ownThread())
        var byte: UInt8 = 0
        counts.send(read(source, &byte, 1))
    }
    let number = await numbers.next()
    let isThere = await eventually { threadSleeps(number) }
    precondition(isThere)
    await interrupt(number, thread)
    precondition(write(target, "x", 1) == 1)
    pthread_join(thread, nil)
    return await counts.next()
}

// Each of these functions has its own frame even in a release build: none of them ends in a call, and they differ, so the
// compiler cannot merge them.

@inline(never) private func waitsForTheFirst(_ gate: Gate) {
    gate.wait()
    errno = 0
}

@inline(never) private func waitsForTheSecond(_ gate: Gate) {
    for _ in 0..<2 { gate.wait() }  // an open gate stays open: the second wait returns at once
    errno = 0
}

@inline(never) private func spins(until isOver: borrowing Atomic<Bool>) {
    while !isOver.load(ordering: .acquiring) {}
}

private final class Flag: Sendable {
    let isSet = Atomic(false)
}

@Suite(.inTurn, .serialized) struct SignalTests {
    @Test func `the dump thread admits only the dump's signal; other threads are unchanged`() async {
        await #expect(processExitsWith: .exitCode(7)) {
            change(SIG_UNBLOCK, SIGUSR1)
            let masks = Mail<[Bool]>()
            guard
                Inspection.dumpOnSignal(
                    SIGUSR2, limit: 3, stacks: true,
                    { masks.send([isLetIn(SIGUSR2), isLetIn(SIGUSR1), isLetIn(SIGTERM), $0.limit == 3]) }),
                isLetIn(SIGUSR1)
            else { exit(1) }
            kill(getpid(), SIGUSR2)
            exit(await masks.next() == [true, false, false, true] ? 7 : 2)
        }
    }

    @Test func `a dump on a signal has stacks on request, and the first request gets them`()
        async
    {
        await #expect(processExitsWith: .exitCode(7)) {
            await exit {
                let scheduler = try! Scheduler(.init(workers: 1, name: "signal-a", spareWorkers: 0))
                let (began, leave) = (Gate(), Gate())
                try! scheduler.submit {
                    began.open()
                    waitsForTheFirst(leave)
                }
                began.wait()
                let dumps = Mail<Dump>()
                guard Inspection.dumpOnSignal(SIGUSR2, stacks: true, { dumps.send($0) }),
                    !Inspection.dumpOnSignal(SIGUSR2, { _ in exit(3) }),
                    !Inspection.dumpOnSignal(SIGUSR1, { _ in exit(4) })
                else { return 1 }
                for _ in 0..<2 {
                    kill(getpid(), SIGUSR2)
                    let stack = await dumps.next().schedulers.first { $0.name == "signal-a" }?.workers[0]
                        .stack
                    guard stack?.functions.contains(where: { $0.contains("waitsForTheFirst") }) == true else {
                        return 2
                    }
                }
                leave.open()
                return 7
            }
        }
    }

    @Test func `dump and stack signals interrupt no system call, and preserve errno`() async {
        await #expect(processExitsWith: .exitCode(7)) {
            let dumps = Mail<Dump>()
            guard Inspection.dumpOnSignal(SIGUSR2, { dumps.send($0) }) else { exit(1) }
            let ofDump = await bytesRead(SIGUSR2) { _, thread in
                pthread_kill(thread, SIGUSR2)
                _ = await dumps.next()
            }
            let ofStack = await bytesRead(SIGPROF) { number, _ in
                let stack = ThreadStack(of: number)
                guard stack.functions.contains(where: { $0.hasSuffix("(libc.so.6)") && $0.count > 11 }),
                    !stack.functions.contains("answer")
                else { exit(5) }
            }
            guard ofDump == 1, ofStack == 1 else { exit(2) }
            let isOver = Flag()
            let (numbers, errors) = (Mail<Int>(), Mail<Int32>())
            let thread = startThread(for: "a test") {
                change(SIG_UNBLOCK, SIGUSR2)
                change(SIG_UNBLOCK, SIGPROF)
                errno = 77
                pthread_kill(pthread_self(), SIGUSR2)
                errors.send(errno)
                numbers.send(ownThread())
                errno = 77
                spins(until: isOver.isSet)
                errors.send(errno)
            }
            let number = await numbers.next()
            // The thread may not be spinning yet.
            let isSpinning = await eventually {
                let stack = ThreadStack(of: number, limit: .seconds(Int64.max))
                return stack.functions.contains { $0.contains("spins") }
            }
            guard isSpinning else { exit(3) }
            isOver.isSet.store(true, ordering: .releasing)
            pthread_join(thread, nil)
            let found = [await errors.next(), await errors.next()]
            exit(found == [77, 77] ? 7 : 4)
        }
    }

    @Test func `a silent thread is not gone, and answers the next request, not the last`()
        async
    {
        await #expect(processExitsWith: .exitCode(7)) {
            let (first, second) = (Gate(), Gate())
            let numbers = Mail<Int>()
            let thread = startThread(for: "a test") {
                change(SIG_BLOCK, SIGPROF)
                numbers.send(ownThread())
                waitsForTheFirst(first)
                change(SIG_UNBLOCK, SIGPROF)  // the abandoned request arrives here
                numbers.send(0)
                waitsForTheSecond(second)
            }
            let number = await numbers.next()
            let none = ThreadStack(of: number, limit: .milliseconds(10))
            guard none.functions.isEmpty,
                none.reason?.hasPrefix("thread \(number) has not answered within 10 ms: ") == true
            else { exit(1) }
            first.open()
            _ = await numbers.next()
            guard await eventually({ threadSleeps(number) }) else { exit(2) }
            let stack = ThreadStack(of: number)
            guard stack.functions.contains(where: { $0.contains("waitsForTheSecond") }) else { exit(3) }
            second.open()
            pthread_join(thread, nil)
            exit(7)
        }
    }

    @Test func `in a forked child nothing is kept`() async {
        await #expect(processExitsWith: .exitCode(7)) {
            Inspection.start()
            let child = forked()
            if child == 0 { _exit(Inspection.isOn ? 1 : 0) }
            var status: Int32 = -1
            while waitpid(child, &status, 0) < 0, errno == EINTR {}
            exit(status == 0 && Inspection.isOn ? 7 : 1)
        }
    }
}
