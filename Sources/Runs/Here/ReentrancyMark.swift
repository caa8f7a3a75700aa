// ReentrancyMark.swift - which runs the calling code is a part of: to wait for one of those would be to wait for itself.

internal import Scheduling
internal import Synchronization

/// A mark on the thread or task of a command: whose turn it has.
///
/// Tasks that a command starts inherit the mark of a task, and may outlive the command: only its own task counts, and those
/// that this module starts for it and awaits. The mark is void once its turn is over: from then on another task may have the
/// number of its owner.
///
/// Public under an SPI, and a part of it inlinable, for what ``Guarded`` says: a generic call that awaits costs a sixth of an undo.
@_spi(Faces) public final class ReentrancyMark: Sendable {
    /// An object that gives turns.
    public typealias Holder = any AnyObject & Sendable

    /// Mostly one, which needs no memory of its own.
    public struct Holders: Sendable {
        private let first: Holder?
        private var others: [Holder] = []

        package init(_ first: Holder? = nil) { self.first = first }

        /// Whether there is none.
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
    private let owner: UInt
    private let isOver = Atomic(false)
    /// The marks that the task inherited, directly or not, and that were not over as this began. Weak, or a chain of tasks that begin
    /// each other would keep them all; one that is not over is kept by its call.
    private let inherited: [Inherited]

    private struct Inherited: Sendable {
        weak let mark: ReentrancyMark?

        func contains(_ holder: Holder) -> Bool { mark?.isGoingOn(in: holder) ?? false }
    }

    /// Of the calling task.
    @usableFromInline init(_ holders: Holders) {
        guard let task = BoundValues.task else { fatalError("ReentrancyMark: no task") }
        self.holders = holders
        owner = task
        inherited = Self.local.get().map { $0.inheritance(of: task) } ?? []
    }

    private func inheritance(of task: UInt) -> [Inherited] {
        if owner == task { return inherited }
        let former = inherited.filter { $0.mark?.isOver.load(ordering: .relaxed) == false }
        return isOver.load(ordering: .relaxed) ? former : former + [Inherited(mark: self)]
    }

    private func isGoingOn(in holder: Holder) -> Bool {
        !isOver.load(ordering: .relaxed) && holders.contains(holder)
    }

    @usableFromInline func end() { isOver.store(true, ordering: .relaxed) }

    /// The holder that has given its turn to the calling code.
    package static var innermost: Holders { call.map { Holders($0.holder) } ?? run?.holders ?? Holders() }

    package static func isInside(_ holder: Holder) -> Bool {
        if let call { return call.holder === holder }
        return run?.holders.contains(holder) ?? false
    }

    /// Whether the calling code, or what began its task, directly or not, is a part of a run of `holder` that is not over. False of a
    /// task that inherits nothing.
    package static func isBegunInside(_ holder: Holder) -> Bool {
        guard let mark = local.get() else { return false }
        return mark.isGoingOn(in: holder) || mark.inherited.contains { $0.contains(holder) }
    }

    /// The code around the caller that never awaits.
    private static var call: Call? {
        guard let call = Call.innermost, call.task == BoundValues.task else { return nil }
        return call
    }

    /// The run that may await, and that the calling code is a part of, unless that code is a part of a ``call``.
    private static var run: ReentrancyMark? {
        guard let current = local.get(), current.owner == BoundValues.task,
            !current.isOver.load(ordering: .relaxed)
        else { return nil }
        return current
    }

    /// Calls `body`, which never awaits, in a turn of `holder`.
    package static func onThread<Value>(of holder: Holder, _ body: () throws -> Value) rethrows -> Value {
        try Call(holder: holder, task: BoundValues.task).around(body)
    }

    /// Calls `body`, in the task and the isolation of this call, in turns of all `holders`.
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

/// A mark on the stack of a thread, which a call that never awaits leaves with its end.
private struct Call {
    let holder: ReentrancyMark.Holder
    /// The task that the thread was running, which one that begins inside the call is not.
    let task: UInt?

    private static let value = ThreadValue()

    /// That of the calling thread, if there is any.
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
