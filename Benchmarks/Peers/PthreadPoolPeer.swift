import BenchmarkCore
import GlibcExtras
import PthreadPool

/// The plain pool: one mutex, two condition variables, one ring.
///
/// Sendable: the C pool locks internally, and `shutdown()` is the last call that uses it.
final class PthreadPoolPeer: PausablePool, @unchecked Sendable {
    static let name = "pthread"
    static let version = "glibc " + String(cString: gnu_get_libc_version())
    static let source = "Benchmarks/Peers/PthreadPoolPeer.swift"

    static func notApplicable(_ workload: String) -> String? { withoutSuspension(workload) }

    private let pool: OpaquePointer
    let threads: Int
    private let gate = Gate()

    init(threads: Int) throws {
        pool = try create(threads: threads)
        self.threads = threads
    }

    // The pool counts queued and running operations itself, and needs nothing for a batch.
    func batch(of count: Int) {}

    @inline(__always)
    func submit(_ job: some Job, in batch: Void) { submit(job) }

    func wait(for batch: Void) { pthread_pool_wait(pool) }

    @inline(__always)
    func submit(_ job: some Job) { append(job, to: pool) }

    func pause() { gate.close(threads: threads) { submit($0) } }

    func unpause() { gate.open(threads: threads) }

    func shutdown() { pthread_pool_destroy(pool) }

    func lanes(_ count: Int) throws -> [PthreadLane] { try (0..<count).map { _ in try PthreadLane() } }
}

/// A pool of one thread.
///
/// Sendable: the C pool locks internally.
final class PthreadLane: Lane, @unchecked Sendable {
    private let pool: OpaquePointer

    fileprivate init() throws { pool = try create(threads: 1) }

    deinit { pthread_pool_destroy(pool) }

    @inline(__always)
    func submit(_ job: some Job) { append(job, to: pool) }
}

private func create(threads: Int) throws -> OpaquePointer {
    guard let pool = pthread_pool_create(threads) else {
        throw PeerError("The pool's threads cannot be started.")
    }
    return pool
}

@inline(__always)
private func append(_ job: some Job, to pool: OpaquePointer) {
    Words.of({ job.run() }) { run, first, second in
        guard pthread_pool_submit(pool, run, first, second) else {
            fatalError("pthread: no memory for the ring")
        }
    }
}
