import BenchmarkCore
import Glibc
import GlibcExtras

/// W20: keeps a peer from starting anything, submits `count` operations and measures the memory; then lets them run and
/// measures again.
func pendingMemory(_ pool: some PausablePool, count: Int) throws -> Sample {
    let slots = Slots(count: count)
    pool.pause()
    var memory = LiveBytes()
    let start = startClock()
    let batch = try pool.batch(of: count)
    for index in 0..<count { pool.submit(Mark(slots: slots, index: index), in: batch) }
    memory.notePending()
    pool.unpause()
    pool.wait(for: batch)
    let stop = stopClock()
    memory.noteDrained()
    return memory.sample(from: start, to: stop, operations: count, checksum: slots.checksum)
}

/// W20 for a hand-made group.
func pendingGroup(_ pool: some PausablePool, count: Int) throws -> Sample {
    let slots = Slots(count: count)
    pool.pause()
    var memory = LiveBytes()
    let start = startClock()
    let stop = try pendingGroup(pool, slots, &memory)
    memory.noteDrained()
    return memory.sample(from: start, to: stop, operations: count, checksum: slots.checksum)
}

/// The group is released when this returns.
private func pendingGroup(_ pool: some PausablePool, _ slots: Slots, _ memory: inout LiveBytes) throws -> Int
{
    let group = HandMadeGroup(count: slots.count)
    let batch = try pool.batch(of: slots.count)
    for index in 0..<slots.count {
        pool.submit(group.child(Mark(slots: slots, index: index)), in: batch)
    }
    memory.notePending()
    pool.unpause()
    pool.wait(for: batch)
    let stop = stopClock()
    withExtendedLifetime(group) {}
    return stop
}

/// The bytes that are allocated and not freed, according to the process's allocator: jemalloc if it is linked, otherwise the
/// C library.
struct LiveBytes {
    private let before: Int
    private var pending = 0
    private var drained = 0

    /// Records what is live before the first submission.
    init() { before = Self.settled() }

    mutating func notePending() { pending = Self.now() }

    mutating func noteDrained() { drained = Self.settled() }

    func sample(from start: Int, to stop: Int, operations: Int, checksum: UInt64) -> Sample {
        var sample = Sample(from: start, to: stop, operations: operations, checksum: checksum)
        sample.extra = [
            "bytes_per_op": Double(pending - before) / Double(operations),
            "bytes_left": Double(drained - before),
        ]
        return sample
    }

    /// Returns the live bytes after 50 ms, which give a pool time to reclaim on a separate thread or after a grace
    /// period.
    private static func settled() -> Int {
        sleep(until: now_ns() + 50_000_000)
        return now()
    }

    private static func now() -> Int {
        guard let mallctl else {
            let info = mallinfo2()
            return Int(info.uordblks + info.hblkhd)
        }
        var epoch: UInt64 = 1
        _ = mallctl("epoch", nil, nil, &epoch, MemoryLayout<UInt64>.size)
        var allocated = 0
        var size = MemoryLayout<Int>.size
        _ = mallctl("stats.allocated", &allocated, &size, nil, 0)
        return allocated
    }
}

private typealias Mallctl =
    @convention(c) (
        UnsafePointer<CChar>, UnsafeMutableRawPointer?, UnsafeMutablePointer<Int>?, UnsafeMutableRawPointer?,
        Int
    ) -> CInt

/// Looked up rather than linked, because linking jemalloc would decide the allocator.
private let mallctl: Mallctl? = dlsym(nil, "mallctl").map { unsafeBitCast($0, to: Mallctl.self) }
