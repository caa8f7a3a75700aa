internal import CScheduler

extension Scheduler {
    /// Submits one operation for every index of a range, without an allocation per index.
    ///
    /// Workers split the range in halves as they take it. The range is counted in `counter` until `body` has
    /// returned for its last index.
    ///
    /// - Parameter body: called once for every index, in no particular order, except for indices that have
    ///   not begun when a shutdown cancels them.
    /// - Throws: as ``submit(_:)-method``; `body` is then not called.
    /// - Complexity: O(1), three allocations for the whole range.
    public func submit(
        _ range: Range<Int>, in counter: CompletionCounter, _ body: @escaping @Sendable (Int) -> Void
    ) throws(SchedulerError) {
        try submit(range, context: context, in: counter, body)
    }

    /// Like ``submit(_:in:_:)``, but does not propagate task-local values.
    func submitHalves(
        _ range: Range<Int>, in counter: CompletionCounter, _ body: @escaping @Sendable (Int) -> Void
    ) throws(SchedulerError) {
        try submit(RangeCall(range, in: counter, body: body, finally: { _ in }))
    }

    /// Calls `body` once for every index of a range, on the workers, and returns after the last.
    ///
    /// On a worker of a scheduler, the call runs parts of the range itself, but no other operations; see
    /// ``CompletionCounter/wait(helping:)``.
    ///
    /// - Throws: as ``submit(_:)-method``, and ``SchedulerError/Code/closed`` when a shutdown cut the range
    ///   short.
    @available(
        *, noasync,
        message: "Blocks the thread; use the asynchronous forEach(_:_:) (in top-level code: in a function)."
    )
    public func forEach(_ range: Range<Int>, _ body: @escaping @Sendable (Int) -> Void) throws(SchedulerError)
    {
        try forEach(range, context: context, body)
    }

    /// Like the blocking ``forEach(_:_:)``, but does not propagate task-local values.
    @available(*, noasync)
    func forEachHalves(_ range: Range<Int>, _ body: @escaping @Sendable (Int) -> Void) throws(SchedulerError)
    {
        let counter = try CompletionCounter()
        let outcome = RangeOutcome()
        try submit(RangeCall(range, in: counter, body: body, finally: { outcome.set($0) }))
        counter.wait()
        if unsafe !outcome.isComplete { throw SchedulerError(.closed) }
    }

    /// Calls `body` once for every index of a range, on the workers, and returns after the last, without
    /// blocking a thread.
    ///
    /// - Throws: as ``submit(_:)-method``, and ``SchedulerError/Code/closed`` when a shutdown cut the range
    ///   short.
    public nonisolated(nonsending) func forEach(
        _ range: Range<Int>, _ body: @escaping @Sendable (Int) -> Void
    ) async throws(SchedulerError) {
        try await forEach(range, context: context, body)
    }

    /// Like the asynchronous ``forEach(_:_:)``, but does not propagate task-local values.
    nonisolated(nonsending) func forEachHalves(
        _ range: Range<Int>, _ body: @escaping @Sendable (Int) -> Void
    ) async throws(SchedulerError) {
        let result: Result<Void, SchedulerError> = await withCheckedContinuation { continuation in
            let call = RangeCall(range, in: nil, body: body) { isComplete in
                continuation.resume(returning: isComplete ? .success(()) : .failure(SchedulerError(.closed)))
            }
            do throws(SchedulerError) {
                try submit(call)
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
        try result.get()
    }

    /// Calls `body` once for every element of a collection, on the workers, and returns after the last.
    ///
    /// ```swift
    /// try scheduler.forEach(files) { file in try compress(file) }
    /// ```
    ///
    /// The order is unspecified; each worker takes runs of adjacent elements. When a call throws, calls that
    /// have not begun are skipped, and calls that have begun are waited for. On a worker of a scheduler,
    /// `forEach` runs parts of the loop itself, but no other operations.
    ///
    /// - Parameter elements: shared by the workers, hence `Sendable`.
    /// - Throws: the earliest error that `body` threw; ``SchedulerError`` as ``submit(_:)-method``
    ///   does, and with code ``SchedulerError/Code/closed`` when a shutdown cut the loop short.
    /// - Complexity: O(n) calls; a fixed number of allocations, none per element.
    @available(
        *, noasync,
        message: "Blocks the thread; use the asynchronous forEach(_:_:) (in top-level code: in a function)."
    )
    @inlinable
    public func forEach<Elements: RandomAccessCollection & Sendable>(
        _ elements: Elements, _ body: @escaping @Sendable (Elements.Element) throws -> Void
    ) throws {
        try runLoop(Chunks(of: elements.count, for: self), Self.eachElement(of: elements, body))
    }

    /// Calls `body` once for every element of a collection, on the workers, and returns after the last,
    /// without blocking a thread.
    ///
    /// ```swift
    /// try await scheduler.forEach(files) { file in try compress(file) }
    /// ```
    ///
    /// The order is unspecified; each worker takes runs of adjacent elements. When a call throws, or the task
    /// is cancelled, calls that have not begun are skipped, and calls that have begun are waited for. (With a
    /// range and a body that does not throw, the compiler selects the form that throws a ``SchedulerError``;
    /// that form ignores cancellation.)
    ///
    /// - Parameter elements: shared by the workers, hence `Sendable`.
    /// - Throws: the earliest error that `body` threw; `CancellationError` when the task was cancelled
    ///   and an element was skipped; ``SchedulerError`` as ``submit(_:)-method`` does, and with code
    ///   ``SchedulerError/Code/closed`` when a shutdown cut the loop short.
    /// - Complexity: O(n) calls; a fixed number of allocations, none per element.
    @inlinable
    public nonisolated(nonsending) func forEach<Elements: RandomAccessCollection & Sendable>(
        _ elements: Elements, _ body: @escaping @Sendable (Elements.Element) throws -> Void
    ) async throws {
        try await awaitLoop(Chunks(of: elements.count, for: self), Self.eachElement(of: elements, body))
    }

    @inlinable
    static func eachElement<Elements: RandomAccessCollection & Sendable>(
        of elements: Elements, _ body: @escaping @Sendable (Elements.Element) throws -> Void
    ) -> Loop.Body {
        { _, offsets, loop in
            var index = elements.index(elements.startIndex, offsetBy: offsets.lowerBound)
            for _ in offsets {
                try loop.goOn()
                try body(elements[index])
                elements.formIndex(after: &index)
            }
        }
    }

    private func submit(_ call: RangeCall) throws(SchedulerError) {
        let context = unsafe Unmanaged.passRetained(call)
        let status = unsafe csched_submit_range(
            handle, UInt64(call.range.count), 0,
            { context, index in
                unsafe Unmanaged<RangeCall>.fromOpaque(context!)._withUnsafeGuaranteedRef { call in
                    call.body(call.range.lowerBound + Int(index))
                }
            },
            { context, isComplete in
                unsafe Unmanaged<RangeCall>.fromOpaque(context!).takeRetainedValue().finally(isComplete)
            },
            context.toOpaque(), call.counter?.handle)
        if status != .ok {
            unsafe context.release()
            try status.check()
        }
    }
}

/// The state that the pieces of one range share.
private final class RangeCall: Sendable {
    let range: Range<Int>
    let counter: CompletionCounter?
    let body: @Sendable (Int) -> Void
    let finally: @Sendable (Bool) -> Void

    init(
        _ range: Range<Int>, in counter: CompletionCounter?, body: @escaping @Sendable (Int) -> Void,
        finally: @escaping @Sendable (Bool) -> Void
    ) {
        self.range = range
        self.counter = counter
        self.body = body
        self.finally = finally
    }
}

/// Whether `body` was called for every index. Written before the range leaves the counter, read after the
/// wait for the counter.
private final class RangeOutcome: Sendable {
    nonisolated(unsafe) private(set) var isComplete = true

    func set(_ isComplete: Bool) { unsafe self.isComplete = isComplete }
}
