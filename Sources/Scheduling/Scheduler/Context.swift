internal import CompositeOperationsBasics
internal import Synchronization

// Task-local values are propagated as the runtime does for every unstructured task: a task is created with a copy of the
// caller's values, and its only job runs as the operation. If no value is bound (BoundValues.swift), no task is created.

extension Scheduler {
    /// Which task-local values an operation sees.
    public enum Context: Hashable, Sendable, CaseIterable {
        /// None of the submitting code's values.
        case empty
        /// Copies of all values bound at the submission, inside or outside of a task, as in `Task { }`.
        case inherited
    }

    /// Submits one operation, which sees the task-local values of the submitting code if `context` is ``Context/inherited``.
    ///
    /// A trace ID reaches the worker:
    ///
    /// ```swift
    /// enum Trace { @TaskLocal static var id: String? }
    ///
    /// try Trace.$id.withValue("request 7") {
    ///     try scheduler.submit(context: .inherited) { log("resizing", trace: Trace.id) }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - context: for this operation, in place of ``Configuration/context``.
    ///   - counter: counts the operation until it has returned.
    /// - Throws: as ``submit(_:)-method``.
    /// - Complexity: as ``submit(_:)-method``; with ``Context/inherited`` about 5 ns more while no value is bound, otherwise
    ///   one more task and two more objects: about 0.5 µs. The first check for bound values takes a millisecond.
    public func submit(
        context: Context, in counter: CompletionCounter? = nil, _ body: @escaping @Sendable () -> Void
    ) throws(SchedulerError) {
        unsafe try submit(Body(context.bound(to: body)), in: counter?.handle)
    }

    // Separate and never inlined, so a submission without a context pays only one comparison.
    @inline(never)
    func submitInherited(
        _ body: consuming @escaping @Sendable () -> Void, in counter: CompletionCounter?
    ) throws(SchedulerError) {
        try submit(context: .inherited, in: counter, body)
    }

    /// Submits one operation for every index of a range, with the submitting code's task-local values if `context` is
    /// ``Context/inherited``.
    ///
    /// In that case, and if a value is bound, the range is not split in halves: each worker gets one operation,
    /// which takes blocks of indices until none are left.
    ///
    /// - Throws: as ``submit(contentsOf:in:)``; `body` is not called then.
    /// - Complexity: O(workers).
    public func submit(
        _ range: Range<Int>, context: Context, in counter: CompletionCounter,
        _ body: @escaping @Sendable (Int) -> Void
    ) throws(SchedulerError) {
        guard context.isNeeded else { return try submitHalves(range, in: counter, body) }
        try submitBlocks(SharedRange(range, workers: workers, body), in: counter)
    }

    /// Calls `body` once for every index of a range, on the workers, with the caller's task-local values if `context` is
    /// ``Context/inherited``, and returns after the last.
    ///
    /// - Throws: as ``submit(contentsOf:in:)``, and ``SchedulerError/Code/closed`` when a shutdown cut the range
    ///   short.
    @available(
        *, noasync,
        message:
            "Blocks the thread; use the asynchronous forEach(_:context:_:) (in top-level code: in a function)."
    )
    public func forEach(
        _ range: Range<Int>, context: Context, _ body: @escaping @Sendable (Int) -> Void
    ) throws(SchedulerError) {
        guard context.isNeeded else { return try forEachHalves(range, body) }
        let counter = try CompletionCounter()
        let shared = SharedRange(range, workers: workers, body)
        try submitBlocks(shared, in: counter)
        counter.wait()
        if !shared.isComplete { throw SchedulerError(.closed) }
    }

    /// Calls `body` once for every index of a range, on the workers, with the caller's task-local values if `context` is
    /// ``Context/inherited``, and returns after the last, without blocking a thread.
    ///
    /// - Throws: as ``submit(contentsOf:in:)``, and ``SchedulerError/Code/closed`` when a shutdown cut the range
    ///   short.
    public nonisolated(nonsending) func forEach(
        _ range: Range<Int>, context: Context, _ body: @escaping @Sendable (Int) -> Void
    ) async throws(SchedulerError) {
        guard context.isNeeded else { return try await forEachHalves(range, body) }
        let counter = try CompletionCounter()
        let shared = SharedRange(range, workers: workers, body)
        try submitBlocks(shared, in: counter)
        let told: Result<Void, SchedulerError> = await withCheckedContinuation { continuation in
            do throws(SchedulerError) {
                try counter.notify { continuation.resume(returning: .success(())) }
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
        try told.get()
        if !shared.isComplete { throw SchedulerError(.closed) }
    }

    private func submitBlocks(_ shared: SharedRange, in counter: CompletionCounter) throws(SchedulerError) {
        try submitEach((0..<shared.pieces).map { _ in Context.inherited.bound { shared.run() } }, in: counter)
    }
}

extension SerialLane {
    /// Appends one operation, which sees the task-local values of the submitting code if `context` is
    /// ``Scheduler/Context/inherited``.
    ///
    /// - Parameters:
    ///   - context: for this operation, in place of ``Scheduler/Configuration/context``.
    ///   - counter: counts the operation until it has returned.
    /// - Throws: as ``submit(_:)``.
    public func submit(
        context: Scheduler.Context, in counter: CompletionCounter? = nil,
        _ body: @escaping @Sendable () -> Void
    ) throws(SchedulerError) {
        unsafe try submit(Body(context.bound(to: body)), in: counter?.handle)
    }

    // See `Scheduler.submitInherited`.
    @inline(never)
    func submitInherited(
        _ body: consuming @escaping @Sendable () -> Void, in counter: CompletionCounter?
    ) throws(SchedulerError) {
        try submit(context: .inherited, in: counter, body)
    }
}

extension Scheduler {
    /// A closure, to be called at most once, that calls `body` with the values bound here, if this scheduler propagates them.
    package func bound(_ body: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        context.bound(to: body)
    }
}

extension Scheduler.Context {
    /// A closure, to be called at most once, that calls `body` with the values bound here if this context is `inherited`.
    @inline(__always)
    func bound(to body: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        guard isNeeded else { return body }
        let task = SynchronousTask()
        return { task.run(body) }
    }

    /// Whether there may be values here to propagate.
    package var isNeeded: Bool { self == .inherited && BoundValues.areHere }
}

/// A task, with the values bound at its creation. Its only job runs once, synchronously, in the call of `run`.
package final class SynchronousTask: Sendable {
    private let receiver: JobReceiver
    // Sendable: the task is run at most once, before `deinit`.
    nonisolated(unsafe) private var hasRun = false

    private init(_ receiver: JobReceiver) { self.receiver = receiver }

    /// Creates a task with copies of the values bound here.
    package convenience init() {
        let receiver = JobReceiver()
        self.init(receiver)
        Task(executorPreference: receiver) { receiver.callBody() }
    }

    /// Whether the running task is a `SynchronousTask`.
    package static var isCurrent: Bool {
        unsafe withUnsafeCurrentTask { unsafe $0?.unownedTaskExecutor?.asTaskExecutor() is JobReceiver }
    }

    /// A task without values.
    package static func detached() -> SynchronousTask {
        let receiver = JobReceiver()
        Task.detached(executorPreference: receiver) { receiver.callBody() }
        return SynchronousTask(receiver)
    }

    /// Calls `body` in the task, on this thread.
    package func run(_ body: () -> Void) {
        unsafe hasRun = true
        withoutActuallyEscaping(body) { body in receiver.run(body) }
    }

    /// Runs a job that has not run yet, which would leak its task otherwise.
    deinit { if unsafe !hasRun { receiver.run(nil) } }
}

/// An executor that keeps the one job it is given.
private final class JobReceiver: TaskExecutor {
    // Sendable: written while the task is created, before another thread can see this object.
    nonisolated(unsafe) private var job: UnownedJob?
    // Sendable: used only by the thread that runs the task.
    nonisolated(unsafe) private var body: (() -> Void)?

    func enqueue(_ job: consuming ExecutorJob) {
        demand(unsafe self.job == nil, "Scheduler.submit: a synchronous body was suspended")
        unsafe self.job = UnownedJob(job)
    }

    /// - Parameter body: nil if the task has nothing to do.
    func run(_ body: (() -> Void)?) {
        guard let job = unsafe job else { fatalError("Scheduler.submit: the runtime withheld the job") }
        unsafe self.body = body
        unsafe job.runSynchronously(on: asUnownedTaskExecutor())
        unsafe self.body = nil
    }

    func callBody() { unsafe body?() }
}

/// A range whose pieces take blocks of indices from it; each piece runs as a separate operation with its own context.
private final class SharedRange: Sendable {
    let pieces: Int
    private let range: Range<Int>
    private let block: Int
    private let body: @Sendable (Int) -> Void
    private let taken = Atomic(0)
    private let called = Atomic(0)

    /// - Parameter workers: 0 when the scheduler is shut down.
    init(_ range: Range<Int>, workers: Int, _ body: @escaping @Sendable (Int) -> Void) {
        let pieces = max(1, workers)
        self.range = range
        self.pieces = min(pieces, range.count)
        self.block = max(1, range.count / (16 * pieces))
        self.body = body
    }

    /// Whether `body` was called for every index; valid once the pieces have ended.
    var isComplete: Bool { called.load(ordering: .relaxed) == range.count }

    func run() {
        while true {
            let first = taken.add(block, ordering: .relaxed).oldValue
            if first >= range.count { return }
            let end = min(first + block, range.count)
            for index in first..<end { body(range.lowerBound + index) }
            called.add(end - first, ordering: .relaxed)
        }
    }
}
