internal import CompositeOperationsBasics
internal import Synchronization

// Task-local values are taken along by what the runtime does for every unstructured task: a task is created, with a copy
// of the caller's values, and its only job is run as the operation. Where no value is bound (BoundValues.swift), no task
// is made.

extension Scheduler {
    /// Which task-local values an operation sees.
    public enum Context: Hashable, Sendable, CaseIterable {
        /// None of the submitting code's.
        case empty
        /// Copies of all that are bound where the operation is submitted, in a task or outside of any, as in
        /// `Task { }`.
        case inherited
    }

    /// Submits one operation that sees the task-local values of the submitting code, when asked.
    ///
    /// A trace survives the way to the worker:
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
    /// - Complexity: as ``submit(_:)-method``; with ``Context/inherited`` some 5 ns more while no value is bound, else a task
    ///   and two objects more: some 0.5 µs. The first question whether one is bound takes a millisecond.
    public func submit(
        context: Context, in counter: CompletionCounter? = nil, _ body: @escaping @Sendable () -> Void
    ) throws(SchedulerError) {
        unsafe try submit(Body(context.bound(to: body)), in: counter?.handle)
    }

    // Apart and never inlined, so that a submission without a context pays one comparison.
    @inline(never)
    func submitInherited(
        _ body: consuming @escaping @Sendable () -> Void, in counter: CompletionCounter?
    ) throws(SchedulerError) {
        try submit(context: .inherited, in: counter, body)
    }

    /// Submits one operation for every index of a range, in the submitting code's context when asked.
    ///
    /// With ``Context/inherited``, and where a value is bound, the range is not cut in halves: each worker gets one
    /// operation, which takes indices in blocks until none is left.
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

    /// Calls `body` once for every index of a range, on the workers, in the caller's context when asked, and
    /// returns after the last.
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

    /// Calls `body` once for every index of a range, on the workers, in the caller's context when asked, and
    /// returns after the last, blocking no thread.
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
    /// Appends one operation that sees the task-local values of the submitting code, when asked.
    ///
    /// - Parameters:
    ///   - context: for this operation, in place of that of ``Scheduler/Configuration/context``.
    ///   - counter: counts the operation until it has returned.
    /// - Throws: as ``submit(_:)``.
    public func submit(
        context: Scheduler.Context, in counter: CompletionCounter? = nil,
        _ body: @escaping @Sendable () -> Void
    ) throws(SchedulerError) {
        unsafe try submit(Body(context.bound(to: body)), in: counter?.handle)
    }

    // As of a scheduler.
    @inline(never)
    func submitInherited(
        _ body: consuming @escaping @Sendable () -> Void, in counter: CompletionCounter?
    ) throws(SchedulerError) {
        try submit(context: .inherited, in: counter, body)
    }
}

extension Scheduler {
    /// A closure that is called at most once, and calls `body` with the values that are bound here, if this scheduler takes
    /// them along.
    package func bound(_ body: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        context.bound(to: body)
    }
}

extension Scheduler.Context {
    /// A closure that is called at most once, and calls `body` in this context of the code that asks now.
    @inline(__always)
    func bound(to body: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        guard isNeeded else { return body }
        let task = SynchronousTask()
        return { task.run(body) }
    }

    /// Whether there may be something to take along from here.
    package var isNeeded: Bool { self == .inherited && BoundValues.areHere }
}

/// A task whose only job waits to be run, once, as part of whatever runs then; with the values that were bound at its creation.
package final class SynchronousTask: Sendable {
    private let receiver: JobReceiver
    // Sendable: a task is run once or released, and `deinit` comes after both.
    nonisolated(unsafe) private var hasRun = false

    private init(_ receiver: JobReceiver) { self.receiver = receiver }

    /// With copies of the values that are bound here.
    package convenience init() {
        let receiver = JobReceiver()
        self.init(receiver)
        Task(executorPreference: receiver) { receiver.callBody() }
    }

    /// Whether the running task is one.
    package static var isCurrent: Bool {
        unsafe withUnsafeCurrentTask { unsafe $0?.unownedTaskExecutor?.asTaskExecutor() is JobReceiver }
    }

    /// Without values.
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

    /// A job that is never run would leak its task.
    deinit { if unsafe !hasRun { receiver.run(nil) } }
}

/// An executor that keeps the one job it is given.
private final class JobReceiver: TaskExecutor {
    // Sendable: written by the creation of the task, before anybody else knows it.
    nonisolated(unsafe) private var job: UnownedJob?
    // Sendable: used by the thread that runs the task alone.
    nonisolated(unsafe) private var body: (() -> Void)?

    func enqueue(_ job: consuming ExecutorJob) {
        demand(unsafe self.job == nil, "Scheduler.submit: a synchronous body was suspended")
        unsafe self.job = UnownedJob(job)
    }

    /// - Parameter body: nil: the task has nothing to do.
    func run(_ body: (() -> Void)?) {
        guard let job = unsafe job else { fatalError("Scheduler.submit: the runtime kept a task's job") }
        unsafe self.body = body
        unsafe job.runSynchronously(on: asUnownedTaskExecutor())
        unsafe self.body = nil
    }

    func callBody() { unsafe body?() }
}

/// A range from which pieces take blocks of indices, each in a context of its own.
private final class SharedRange: Sendable {
    let pieces: Int
    private let range: Range<Int>
    private let block: Int
    private let body: @Sendable (Int) -> Void
    private let taken = Atomic(0)
    private let called = Atomic(0)

    /// - Parameter workers: none when the scheduler is shut down.
    init(_ range: Range<Int>, workers: Int, _ body: @escaping @Sendable (Int) -> Void) {
        let pieces = max(1, workers)
        self.range = range
        self.pieces = min(pieces, range.count)
        self.block = max(1, range.count / (16 * pieces))
        self.body = body
    }

    /// Whether every index was called, once the pieces have ended.
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
