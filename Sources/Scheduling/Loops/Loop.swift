// Loop.swift - the basis of forEach, map and reduce: elements in chunks, each of which runs on a worker.
//
// The collection and the closure are generic, and specialised at the call site, so this file knows neither; it calls one
// closure per chunk. Nothing is allocated per chunk.

internal import CScheduler
internal import Synchronization

/// How elements are divided: into chunks of `size`; the last chunk may be shorter.
@usableFromInline
struct Chunks: Sendable {
    @usableFromInline let elements: Int
    @usableFromInline let size: Int
    /// How many chunks a worker takes at a time; 0: the scheduler chooses.
    let grain: UInt64

    /// Divides for a scheduler: about 32 chunks per worker, to even out differences in cost.
    @usableFromInline
    init(of elements: Int, for scheduler: Scheduler) {
        self.elements = elements
        size = elements / (32 * max(1, scheduler.workers)) + 1
        grain = 1
    }

    /// Divides as the caller requests.
    @usableFromInline
    init(of elements: Int, size: Int) {
        self.elements = elements
        self.size = max(1, min(size, elements))
        grain = 0
    }

    @usableFromInline var count: Int { elements / size + (elements % size == 0 ? 0 : 1) }

    @usableFromInline
    func range(of chunk: Int) -> Range<Int> {
        let first = chunk * size
        return first..<(elements - first > size ? first + size : elements)
    }
}

/// The state that the chunks of one loop share: the first error, and whether the remaining elements are still to be
/// processed.
@safe @usableFromInline
final class Loop: Sendable {
    /// Called with the number of a chunk and the offsets of its elements. The body calls ``goOn()`` before each element.
    @usableFromInline
    typealias Body = @Sendable (_ chunk: Int, _ offsets: Range<Int>, _ loop: Loop) throws -> Void

    /// Thrown to skip the remaining elements.
    private struct Stopped: Error {}

    // Sendable: the loop ends before its scheduler's handle is destroyed.
    nonisolated(unsafe) private let scheduler: OpaquePointer
    let chunks: Chunks
    private let body: Body
    private let ended: @Sendable (Loop) -> Void
    /// Written by the chunk that sets `hasFailed`, and read after the end.
    nonisolated(unsafe) private var failure: (any Error)?
    private let hasFailed = Atomic(false)
    // All relaxed: the end of the range publishes what a chunk wrote (P20 of range.c), and a chunk that sees a stop request
    // late only does work that was not needed.
    private let isStopped = Atomic(false)
    private let isCancelled = Atomic(false)
    private let isCutShort = Atomic(false)

    init(
        _ chunks: Chunks, on scheduler: Scheduler, body: @escaping Body,
        ended: @escaping @Sendable (Loop) -> Void
    ) {
        unsafe self.scheduler = scheduler.handle
        self.chunks = chunks
        self.body = body
        self.ended = ended
    }

    /// Throws when an earlier element failed, the task was cancelled, or a shutdown cancels.
    @usableFromInline
    func goOn() throws {
        if isStopped.load(ordering: .relaxed) { throw Stopped() }
        if unsafe csched_scheduler_is_cancelling(scheduler) { throw Stopped() }
    }

    /// Called when the surrounding task is cancelled.
    func cancel() {
        isCancelled.store(true, ordering: .relaxed)
        isStopped.store(true, ordering: .relaxed)
    }

    fileprivate func run(_ chunk: Int) {
        do {
            try goOn()
            try body(chunk, chunks.range(of: chunk), self)
        } catch is Stopped {
            isCutShort.store(true, ordering: .relaxed)
        } catch {
            isStopped.store(true, ordering: .relaxed)
            if !hasFailed.exchange(true, ordering: .relaxed) { unsafe failure = error }
        }
    }

    fileprivate func end(isComplete: Bool) {
        if !isComplete { isCutShort.store(true, ordering: .relaxed) }
        ended(self)
    }

    /// How the loop ended; read only after its end.
    var outcome: Result<Void, any Error> {
        if let error = unsafe failure { return .failure(error) }
        guard isCutShort.load(ordering: .relaxed) else { return .success(()) }
        return .failure(
            isCancelled.load(ordering: .relaxed) ? CancellationError() : SchedulerError(.closed))
    }
}

extension Scheduler {
    /// Runs a loop, and blocks until it has ended.
    @available(*, noasync)
    @usableFromInline
    func runLoop(_ chunks: Chunks, _ body: @escaping Loop.Body) throws {
        let counter = try CompletionCounter()
        let loop = Loop(chunks, on: self, body: body, ended: { _ in })
        try submit(loop, in: counter)
        counter.wait()
        try loop.outcome.get()
    }

    /// Runs a loop, and waits until it has ended; when the task is cancelled, chunks that have not begun are skipped.
    @usableFromInline
    nonisolated(nonsending) func awaitLoop(_ chunks: Chunks, _ body: @escaping Loop.Body) async throws {
        try Task.checkCancellation()
        let end = LoopEnd()
        let loop = Loop(chunks, on: self, body: body, ended: { end.resume(with: $0.outcome) })
        try await awaitEnd(of: loop, end)
    }

    /// Submits the loop, and waits on the caller's actor. The closure has to use the `isolation` parameter, or it would
    /// leave the actor and return.
    private func awaitEnd(
        isolation: isolated (any Actor)? = #isolation, of loop: Loop, _ end: LoopEnd
    ) async throws {
        defer { end.acquire() }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation(isolation: isolation) { continuation in
                unsafe end.continuation = continuation
                do throws(SchedulerError) {
                    try submit(loop, in: nil)
                } catch {
                    continuation.resume(throwing: error)
                }
            }
        } onCancel: {
            loop.cancel()
        }
    }

    private func submit(_ loop: Loop, in counter: CompletionCounter?) throws(SchedulerError) {
        let context = unsafe Unmanaged.passRetained(loop)
        let status = unsafe csched_submit_range(
            handle, UInt64(loop.chunks.count), loop.chunks.grain,
            { context, chunk in
                unsafe Unmanaged<Loop>.fromOpaque(context!)._withUnsafeGuaranteedRef { $0.run(Int(chunk)) }
            },
            { context, isComplete in
                unsafe Unmanaged<Loop>.fromOpaque(context!).takeRetainedValue().end(isComplete: isComplete)
            },
            context.toOpaque(), counter?.handle)
        if status != .ok {
            unsafe context.release()
            try status.check()
        }
    }
}

/// The task that waits for a loop.
private final class LoopEnd: Sendable {
    // Sendable: written before the loop is submitted, read at its end.
    nonisolated(unsafe) var continuation: CheckedContinuation<Void, any Error>?
    // resume (release) -> acquire: the loop's writes. The runtime orders them, too, but ThreadSanitizer does not see that
    // if the loop ended before its task was suspended.
    private let hasEnded = Atomic(false)

    func resume(with outcome: Result<Void, any Error>) {
        hasEnded.store(true, ordering: .releasing)
        unsafe continuation?.resume(with: outcome)
    }

    /// Called when the task has resumed.
    func acquire() { _ = hasEnded.load(ordering: .acquiring) }
}
