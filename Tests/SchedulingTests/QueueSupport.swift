// Stand-alone deques and inboxes, for the tests of both: operations that carry numbers, and a measure of the memory in
// use.
//
// An operation carries its number in three of its four words, in a different form in each, so that a torn read of a slot
// shows, whatever the number.

import CScheduler.Internals
import Glibc

private let doNothing: csched_function = { _, _, _ in }
private let mark: UInt = 0x5A5A_5A5A

private func operation(carrying number: Int) -> csched_operation {
    let bits = UInt(number) + 1
    return csched_operation(
        run: doNothing, context: UnsafeMutableRawPointer(bitPattern: bits),
        extra: UnsafeMutableRawPointer(bitPattern: bits << 8),
        counter: OpaquePointer(bitPattern: bits ^ mark << 32))
}

/// The number that an operation carries; `torn` when its words do not belong together.
private func number(of operation: csched_operation) -> Int {
    let bits = UInt(bitPattern: operation.context)
    let isWhole =
        UInt(bitPattern: operation.extra) == bits << 8
        && UInt(bitPattern: operation.counter) == bits ^ mark << 32
    return isWhole ? Int(bits) - 1 : torn
}

/// The value read instead of the number of an operation whose words do not belong together.
let torn = -1

private func reading(room: Int, _ read: (UnsafeMutablePointer<csched_operation>) -> Int) -> [Int] {
    withUnsafeTemporaryAllocation(of: csched_operation.self, capacity: room) { buffer in
        let count = read(buffer.baseAddress!)
        return (0..<count).map { number(of: buffer[$0]) }
    }
}

/// Registers the calling thread as a reader, which may steal and take, for the duration of `body`.
func asReader<R>(_ body: () throws -> R) rethrows -> R {
    csched_reader_begin()
    defer { csched_reader_end() }
    return try body()
}

/// Runs `body` in one read section: nothing that is retired meanwhile is freed before its end.
func whileReading<R>(_ body: () throws -> R) rethrows -> R {
    try asReader {
        csched_read_section_begin()
        defer { csched_read_section_end() }
        return try body()
    }
}

/// A stand-alone deque.
final class TestDeque: @unchecked Sendable {
    // Unchecked: the tests keep to the contract of which thread may call what.
    private let deque = csched_test_deque_create()

    init(holding numbers: Range<Int> = 0..<0) {
        if !numbers.isEmpty { push(numbers) }
    }

    deinit { csched_test_deque_destroy(deque) }

    /// Owner. Precondition: memory is not exhausted.
    func push(_ numbers: Range<Int>) {
        let operations = numbers.map(operation)
        precondition(csched_test_deque_push(deque, operations, operations.count))
    }

    /// Owner.
    func pop() -> Int? {
        var operation = operation(carrying: 0)
        return csched_test_deque_pop(deque, &operation) ? number(of: operation) : nil
    }

    /// Any reader.
    func steal(room: Int = 32) -> [Int] { reading(room: room) { csched_test_deque_steal(deque, $0, room) } }

    /// Owner. As `push`, without an array: up to 4 numbers from `first` on.
    @inline(__always)
    func pushQuickly(_ first: Int, count: Int) {
        var four = (
            operation(carrying: first), operation(carrying: first + 1), operation(carrying: first + 2),
            operation(carrying: first + 3)
        )
        withUnsafePointer(to: &four) { four in
            four.withMemoryRebound(to: csched_operation.self, capacity: 4) {
                precondition(csched_test_deque_push(deque, $0, min(count, 4)))
            }
        }
    }

    /// Owner. Pops one operation and notes it; false if there was none.
    @inline(__always)
    func popQuickly(into tally: Tally, as taker: Int) -> Bool {
        var operation = operation(carrying: 0)
        guard csched_test_deque_pop(deque, &operation) else { return false }
        tally.note(number(of: operation), taker: taker)
        return true
    }

    /// Any reader. Steals at most one operation and notes it.
    @inline(__always)
    func stealQuickly(into tally: Tally, as taker: Int) {
        var operation = operation(carrying: 0)
        if csched_test_deque_steal(deque, &operation, 1) != 0 {
            tally.note(number(of: operation), taker: taker)
        }
    }

    /// The number of buffers that were replaced and are not freed yet.
    var unreclaimed: Int { Int(csched_test_deque_unreclaimed(deque)) }

    /// Waits until everything that deques and inboxes have retired is freed.
    static func reclaim() { csched_test_reclaim_flush() }
}

/// A stand-alone inbox.
final class TestInbox: @unchecked Sendable {
    // Unchecked: as above.
    private let inbox = csched_test_inbox_create()

    deinit { csched_test_inbox_destroy(inbox) }

    /// Owner. False if the inbox is closed.
    func append(_ numbers: Range<Int>) -> Bool {
        let operations = numbers.map(operation)
        return csched_test_inbox_append(inbox, operations, operations.count)
    }

    /// Any reader.
    func close() { csched_test_inbox_close(inbox) }

    /// Any reader.
    func take(room: Int = 32) -> [Int] { reading(room: room) { csched_test_inbox_take(inbox, $0, room) } }

    /// Any reader.
    var isEmpty: Bool { csched_test_inbox_is_empty(inbox) }
}

/// The counts of takes, by taker and number. Each taker has its own memory, so that recording a take orders nothing.
final class Tally: @unchecked Sendable {
    // Unchecked: each taker writes its own part, and reading happens after all takers have ended.
    private let times: UnsafeMutablePointer<UInt8>
    private let count: Int
    private let takers: Int

    init(count: Int, takers: Int) {
        self.count = count
        self.takers = takers
        times = .allocate(capacity: count * takers)
        times.initialize(repeating: 0, count: count * takers)
    }

    deinit { times.deallocate() }

    func note(_ number: Int, taker: Int) {
        precondition((0..<count).contains(number), "taken, but never pushed: \(number)")
        (times + taker * count + number).pointee += 1
    }

    /// Whether every number was taken by one taker, once.
    var areAllOnce: Bool {
        (0..<count).allSatisfy { number in
            (0..<takers).reduce(0) { $0 + Int((times + $1 * count + number).pointee) } == 1
        }
    }
}

/// Nanoseconds of a clock that all threads share, and that orders none of their accesses.
func now() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// `malloc_trim` of glibc, which the module Glibc does not export.
private let trim: (@convention(c) (Int) -> CInt)? = dlsym(nil, "malloc_trim").map {
    unsafeBitCast($0, to: (@convention(c) (Int) -> CInt).self)
}

/// The memory that the process has in use, in bytes. The allocator's free memory is returned to the system first: memory
/// that is freed late would otherwise stay, if a small block lies behind it.
func residentBytes() -> Int {
    _ = trim?(0)
    guard let file = fopen("/proc/self/statm", "re") else { return 0 }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    guard fgets(&line, Int32(line.count), file) != nil else { return 0 }
    let pages = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        .split(separator: " ").dropFirst().first.flatMap { Int($0) }
    return (pages ?? 0) * Int(sysconf(Int32(_SC_PAGESIZE)))
}

extension Array<Int> {
    /// Whether each element is greater than the one before it.
    var isAscending: Bool { zip(self, dropFirst()).allSatisfy(<) }
}
