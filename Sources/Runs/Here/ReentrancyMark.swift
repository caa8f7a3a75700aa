// ReentrancyMark.swift - which runs the caller is part of: a wait for one of them would wait for the caller itself.

internal import Scheduling
internal import Synchronization

/// A mark on the thread or task of a command, which records the holder whose turn it has.
///
/// Tasks that a command starts inherit the mark, and may outlive the command. So only the command's own task counts, and tasks that
/// this module starts for it and awaits. The mark is void once its turn is over: from then on another task may have the number of its
/// owner.
///
/// Public under an SPI, and partly inlinable, for the reason given at ``Guarded``: each frame of a generic call that awaits allocates
/// for every value of unknown size.
@_spi(Faces) public final class ReentrancyMark: Sendable {
    /// An object that grants turns.
    public typealias Holder = any AnyObject & Sendable

    /// A set of holders: usually one, which needs no separate allocation.
    public struct Holders: Sendable {
        private let first: Holder?
        private var others: [Holder] = []

        package init(_ first: Holder? = nil) { self.first = first }

        /// Whether there is no holder.
        public var isEmpty: Bool { first == nil }
        package func contains(_ holder: Holder) -> Bool {
            first === holder || others.contains { $0 === holder }
        }
        package func with(_ holder: Holder) -> Holders {
            var all = Holders(first ?? holder)
            if first != nil { all.others = others + [holder] }
            return all
        }
    }

    @usableFromInline static let local = TaskLocal<ReentrancyMark?>(wrappedValue: nil)

    private let holders: Holders
    /// The number of the task that has the turn; 0 until a task that was started for it has begun.
    private let owner: Atomic<UInt>
    private let isOver = Atomic(false)
    /// The marks that the task inherited, directly or indirectly, and that were not over when this mark was made. Weak, since otherwise
    /// a chain of tasks that start each other would retain them all; a mark that is not over is retained by its call.
    private let inherited: [Inherited]

    private struct Inherited: Sendable {
        weak let mark: ReentrancyMark?

        func contains(_ holder: Holder) -> Bool { mark?.isGoingOn(in: holder) ?? false }
    }

    /// Creates a mark for the calling task.
    @usableFromInline init(_ holders: Holders) {
        guard let task = BoundValues.task else { fatalError("ReentrancyMark: no task") }
        self.holders = holders
        owner = Atomic(task)
        inherited = Self.local.get().map { $0.inheritance(of: task) } ?? []
    }

    /// Creates a mark for a task that is started in ``bound(_:)``, and that calls ``begin()`` first and ``end()`` last.
    ///
    /// A binding inside the task would cost three more frames that await.
    package init(ofNewTask holders: Holders) {
        self.holders = holders
        owner = Atomic(0)
        inherited = Self.local.get().map { $0.inheritance(of: 0) } ?? []
    }

    /// Calls `start`, whose tasks inherit this mark.
    package func bound<Value>(_ start: () -> Value) -> Value { Self.local.withValue(self, operation: start) }

    /// Begins the turn of the calling task.
    package func begin() {
        guard let task = BoundValues.task else { fatalError("ReentrancyMark: no task") }
        owner.store(task, ordering: .relaxed)  // read by this task, and by tasks that it starts
    }

    private func inheritance(of task: UInt) -> [Inherited] {
        if owner.load(ordering: .relaxed) == task { return inherited }
        let former = inherited.filter { $0.mark?.isOver.load(ordering: .relaxed) == false }
        return isOver.load(ordering: .relaxed) ? former : former + [Inherited(mark: self)]
    }

    private func isGoingOn(in holder: Holder) -> Bool {
        !isOver.load(ordering: .relaxed) && holders.contains(holder)
    }

    @usableFromInline package func end() { isOver.store(true, ordering: .relaxed) }

    /// The holders whose turn the caller has.
    package static var innermost: Holders { call.map { Holders($0.holder) } ?? run?.holders ?? Holders() }

    package static func isInside(_ holder: Holder) -> Bool {
        if let call { return call.holder === holder }
        return run?.holders.contains(holder) ?? false
    }

    /// Whether the caller, or code that started its task, directly or indirectly, is part of a run of `holder` that is not over.
    /// False for a task that inherits nothing.
    package static func isBegunInside(_ holder: Holder) -> Bool {
        guard let mark = local.get() else { return false }
        return mark.isGoingOn(in: holder) || mark.inherited.contains { $0.contains(holder) }
    }

    /// The innermost enclosing call that never awaits, if it belongs to the caller's task.
    private static var call: Call? {
        guard let call = Call.innermost, call.task == BoundValues.task else { return nil }
        return call
    }

    /// The enclosing run that may await; meaningful only if there is no enclosing ``call``.
    private static var run: ReentrancyMark? {
        guard let current = local.get(), current.owner.load(ordering: .relaxed) == BoundValues.task,
            !current.isOver.load(ordering: .relaxed)
        else { return nil }
        return current
    }

    /// Calls `body`, which never awaits, in a turn of `holder`.
    package static func onThread<Value>(of holder: Holder, _ body: () throws -> Value) rethrows -> Value {
        try Call(holder: holder, task: BoundValues.task).around(body)
    }

    /// Calls `body` in the caller's task and isolation, in turns of all `holders`.
    @inlinable public static func inTask<Value>(
        of holders: Holders, isolation: isolated (any Actor)? = #isolation,
        _ body: nonisolated(nonsending) () async throws -> Value
    ) async rethrows -> Value {
        if holders.isEmpty { return try await body() }
        let run = ReentrancyMark(holders)
        defer { run.end() }
        return try await local.withValue(
            run,
            operation: {
                _ = isolation  // a closure is isolated to what it captures
                return try await body()
            }, isolation: isolation)
    }
}

/// A mark on the stack of a thread, for the duration of a call that never awaits.
private struct Call {
    let holder: ReentrancyMark.Holder
    /// The task that the thread was running; a task that starts inside the call is a different one.
    let task: UInt?

    private static let value = ThreadValue()

    /// The innermost call on the calling thread, if any.
    static var innermost: Call? {
        value.here?.assumingMemoryBound(to: Call.self).pointee
    }

    @inline(__always)
    func around<Value>(_ body: () throws -> Value) rethrows -> Value {
        let value = Self.value
        let outer = value.here
        defer { value.set(outer) }
        return try withUnsafePointer(to: self) { call in
            value.set(call)
            return try body()
        }
    }
}
