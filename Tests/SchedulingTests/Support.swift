// Helpers shared by the tests of this module: sizes, thread-safe counts, and queries to the kernel about
// threads.

import CScheduler
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Synchronization
import Testing

/// Everything that loads the machine, takes time or counts the process's resources, one test after another. A
/// test that hangs ends the process.
@Suite(.inTurn, .serialized, .watched(stressLimit)) enum Stress {}

/// Stress sizes scale with the environment variable `STRESS_SCALE`.
let stressScale: Double = getenv("STRESS_SCALE").flatMap { Double(String(cString: $0)) } ?? 1

/// How long a case of a stress test may take: many times what it takes on a busy machine.
let stressLimit: Duration =
    .seconds(60) * max(1, stressScale) * (isThreadSanitized || isAddressSanitized ? 5 : 1)

/// ThreadSanitizer gives up in forked children, keeps its own memory, and is slow.
let isThreadSanitized = dlsym(nil, "__tsan_init") != nil

/// AddressSanitizer keeps freed memory, and its malloc takes locks, in which a thread may be stopped.
let isAddressSanitized = dlsym(nil, "__asan_init") != nil

func scaled(_ count: Int) -> Int { max(1, Int(Double(count) * stressScale)) }

/// A count with an identity, so that closures can share it.
final class Count: Sendable {
    private let storage = Atomic(0)

    var value: Int { storage.load(ordering: .sequentiallyConsistent) }

    @discardableResult
    func add(_ amount: Int = 1) -> Int { storage.add(amount, ordering: .sequentiallyConsistent).newValue }

    func reset(to value: Int = 0) { storage.store(value, ordering: .sequentiallyConsistent) }

    func raise(to value: Int) { storage.max(value, ordering: .sequentiallyConsistent) }
}

/// How often each of `count` operations ran.
final class Runs: Sendable {
    private let counts: [Count]

    init(_ count: Int) { counts = (0..<count).map { _ in Count() } }

    /// Returns the number of runs, including this one.
    @discardableResult
    func note(_ index: Int) -> Int { counts[index].add() }

    var each: [Int] { counts.map(\.value) }
    var total: Int { each.reduce(0, +) }
    var areExactlyOnce: Bool { counts.allSatisfy { $0.value == 1 } }
    var areAtMostOnce: Bool { counts.allSatisfy { $0.value <= 1 } }
}

/// Counts its deallocation: captured by a closure, it shows that the closure was released.
final class Token: Sendable {
    private let released: Count
    init(_ released: Count) { self.released = released }
    deinit { released.add() }
}

/// Polls, for conditions that no event reports: the scheduler's counts and the kernel's view of a thread.
func eventually(within limit: Duration = .seconds(20), _ condition: () throws -> Bool) rethrows -> Bool {
    let end = ContinuousClock.now + limit
    while try !condition() {
        if ContinuousClock.now > end { return false }
        usleep(200)
    }
    return true
}

/// Gives every other thread many chances to do what it must not do.
func yieldOften(_ times: Int = 500) {
    for _ in 0..<times { sched_yield() }
}

/// Runs `body` while the threads whose names begin with `prefix` are held up repeatedly, at arbitrary points. So
/// a failure that needs a preemption between two instructions need not wait for the kernel to cause one.
///
/// - Throws: what `body` throws.
func disturbing(_ prefix: String, _ body: () throws -> Void) throws {
    let disturber = try Disturber(prefix)
    let context = Unmanaged.passRetained(disturber)
    let started = csched_call_on_thread(
        { Unmanaged<Disturber>.fromOpaque($0!).takeRetainedValue().run() }, context.toOpaque())
    if started != .ok { context.release() }
    try #require(started == .ok)
    defer { disturber.end() }
    try body()
}

private final class Disturber: Sendable {
    // The module Glibc lacks the GNU extensions.
    private typealias Send = @convention(c) (pid_t, pid_t, Int32) -> Int32

    private let prefix: String
    private let send: Send
    private let wanted = Count()
    private let gone = Gate()

    init(_ prefix: String) throws {
        self.prefix = prefix
        send = unsafeBitCast(try #require(dlsym(nil, "tgkill")), to: Send.self)
        var action = sigaction()
        action.sa_flags = SA_RESTART
        action.__sigaction_handler.sa_handler = { _ in
            let before = errno
            var moment = timespec(tv_sec: 0, tv_nsec: 100_000)
            nanosleep(&moment, nil)
            errno = before
        }
        // The handler stays, because a signal may arrive late.
        try #require(sigaction(SIGPROF, &action, nil) == 0)
        wanted.add()
    }

    func run() {
        while wanted.value > 0 {
            let threads = KernelThread.named(prefix)
            for _ in 0..<8 {
                for thread in threads where wanted.value > 0 && send(getpid(), thread.id, SIGPROF) == 0 {
                    // Longer than the handler's sleep, on average, so that the thread makes progress.
                    usleep(UInt32.random(in: 0...(1000 / UInt32(threads.count))))
                }
            }
            sched_yield()
        }
        gone.open()
    }

    func end() {
        wanted.reset()
        gone.wait()
    }
}

/// Adds the calling thread to those that `disturbing(_:_:)` holds up.
func takePart(in prefix: String) {
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGPROF)
    // The threads of the test's pool, and so their children, block signals.
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    nameThisThread(prefix)
}

/// The number of bytes in use according to malloc: exact, whereas the kernel counts pages.
func memoryInUse() throws -> Int {
    // The module Glibc does not cover <malloc.h>.
    typealias Report = @convention(c) (Int32, UnsafeMutablePointer<FILE>) -> Int32
    let report = unsafeBitCast(try #require(dlsym(nil, "malloc_info")), to: Report.self)
    let room = 1 << 18
    let text = UnsafeMutablePointer<CChar>.allocate(capacity: room)
    defer { text.deallocate() }
    let stream = try #require(fmemopen(text, room, "w"))
    try #require(report(0, stream) == 0)
    fclose(stream)
    let lines = String(cString: text).split(separator: "\n")
    func size(_ line: String) throws -> Int {
        // The last one is the sum: <total type="rest" count="12" size="345"/>
        let sum = lines.last { $0.hasPrefix("<\(line)\"") }
        let number = sum?.split(separator: "\"").dropLast().last
        return try #require(number.flatMap { Int($0) }, "malloc reports no <\(line)")
    }
    return try size("system type=\"current") + size("total type=\"mmap") - size("total type=\"fast")
        - size("total type=\"rest")
}

/// The kernel's view of one thread.
struct KernelThread {
    let id: Int32

    /// The threads of this process whose names begin with `prefix`, except for the watch of a scheduler.
    static func named(_ prefix: String) -> [KernelThread] {
        all().filter { $0.name.hasPrefix(prefix) && !$0.name.hasSuffix("-watch") }
    }

    /// The watch of the scheduler of this name.
    static func watch(of scheduler: String) -> [KernelThread] {
        all().filter { $0.name == scheduler + "-watch" }
    }

    /// Empty when the thread has ended.
    private var name: String {
        contents(of: "/proc/self/task/\(id)/comm").map { String($0.prefix { $0 != "\n" }) } ?? ""
    }

    static func all() -> [KernelThread] {
        (names(in: "/proc/self/task") ?? []).compactMap { Int32($0).map(KernelThread.init) }
    }

    static var current: KernelThread {
        var path = [CChar](repeating: 0, count: 64)  // ".../task/<id>"
        let length = readlink("/proc/thread-self", &path, path.count)
        let text = String(decoding: path.prefix(max(0, length)).map(UInt8.init(bitPattern:)), as: UTF8.self)
        return KernelThread(id: Int32(text.split(separator: "/").last ?? "") ?? 0)
    }

    /// The number of times the thread gave up its CPU voluntarily; nil when the thread has ended.
    var voluntarySwitches: Int? {
        contents(of: "/proc/self/task/\(id)/status")?
            .split(separator: "\n").first { $0.hasPrefix("voluntary_ctxt_switches:") }
            .flatMap { Int($0.drop { !$0.isNumber }) }
    }

    /// Whether the thread sleeps in the kernel.
    var isAsleep: Bool {
        guard let status = contents(of: "/proc/self/task/\(id)/stat") else { return false }
        return status[status.lastIndex(of: ")")!...].hasPrefix(") S")
    }
}

extension Scheduler.Configuration {
    /// Workers that are not replaced, however long a test holds them.
    static func workers(_ count: Int) -> Self { Self(workers: count, spareWorkers: 0) }
}

/// The code that `body` fails with; nil when it succeeds.
func code(_ body: () throws -> Void) -> SchedulerError.Code? {
    do {
        try body()
        return nil
    } catch let error as SchedulerError {
        return error.code
    } catch {
        Issue.record(error)
        return nil
    }
}

// The C functions take pointers; the tests keep their operations in constants.

func csched_submit(_ scheduler: OpaquePointer, _ operation: csched_operation) -> csched_status {
    withUnsafePointer(to: operation) { csched_submit(scheduler, $0) }
}

func csched_submit_exempt(_ scheduler: OpaquePointer, _ operation: csched_operation) -> csched_status {
    withUnsafePointer(to: operation) { csched_submit_exempt(scheduler, $0) }
}

func csched_lane_submit(_ lane: OpaquePointer, _ operation: csched_operation) -> csched_status {
    withUnsafePointer(to: operation) { csched_lane_submit(lane, $0) }
}

func csched_lane_submit_surely(
    _ lane: OpaquePointer, _ operation: csched_operation, _ fallback: OpaquePointer
) -> csched_status {
    withUnsafePointer(to: operation) { csched_lane_submit_surely(lane, $0, .inherited, fallback) }
}

/// A value behind a lock that ThreadSanitizer understands, unlike `Mutex`.
final class Locked<Value>: @unchecked Sendable {
    // Unchecked: `value` is accessed only under `lock`.
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private var value: Value

    init(_ value: Value) {
        self.value = value
        pthread_mutex_init(lock, nil)
    }

    deinit {
        pthread_mutex_destroy(lock)
        lock.deallocate()
    }

    func withLock<Answer, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Answer
    ) throws(Failure) -> Answer {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return try body(&value)
    }
}
