// UndoStep.swift - a step of an undo stack, and the changes in it.

internal import CompositeOperationsBasics
@_spi(Faces) internal import Runs

/// Changes that are undone and redone as one.
struct UndoStep {
    let name: String?
    /// Boxed, since few steps have a key: a step without one is smaller, and checking for a key does not copy it.
    private let mergeKey: MergeKey?
    /// When the last of its changes was made. For a step without a key, computed only when needed.
    var time: Duration
    var actions: UndoActions

    init(_ name: String?, _ mergeKey: AnyHashable?, _ time: Duration, _ actions: UndoActions) {
        self.name = name
        self.mergeKey = mergeKey.map { MergeKey($0) }
        self.time = time
        self.actions = actions
    }

    var hasKey: Bool { mergeKey != nil }

    /// Whether both steps have a key, and the keys are equal.
    func hasKey(of other: UndoStep) -> Bool {
        guard let mergeKey, let key = other.mergeKey else { return false }
        return mergeKey.value == key.value
    }
}

private final class MergeKey {
    let value: AnyHashable
    init(_ value: AnyHashable) { self.value = value }
}

/// Changes in order: usually one, which needs no separate allocation.
struct UndoActions: RandomAccessCollection, RangeReplaceableCollection {
    private var first: UndoAction?
    private var others: [UndoAction] = []

    init() {}
    init(_ only: UndoAction) { first = only }

    var startIndex: Int { 0 }
    var endIndex: Int { first == nil ? 0 : 1 + others.count }
    subscript(index: Int) -> UndoAction { index == 0 ? first! : others[index - 1] }

    mutating func append(_ action: UndoAction) {
        if first == nil { first = action } else { others.append(action) }
    }

    mutating func append(contentsOf actions: some Sequence<UndoAction>) {
        for action in actions { append(action) }
    }

    /// - Complexity: O(count).
    mutating func replaceSubrange(_ range: Range<Int>, with actions: some Collection<UndoAction>) {
        var all = Array(self)
        all.replaceSubrange(range, with: actions)
        first = all.first
        others = Array(all.dropFirst())
    }
}

/// A change that can be undone and redone.
@usableFromInline class UndoAction {
    /// The target of the change: see ``UndoStack/removeAll(target:)``.
    private(set) weak var target: AnyObject?
    /// Identifies the target even while it is being deallocated, when weak references to it are nil.
    let targetID: ObjectIdentifier?
    /// Undoes the change if the context is that of an undo, and otherwise redoes it. Returns the objects that a redo replaces, for the
    /// stack's isolation to release, outside the step.
    @usableFromInline typealias Work = @Sendable (UndoAction, CommandContext) async throws -> (any Sendable)?
    /// A closure, not a method: where the type of the command is known, it looks up no metadata, and needs no memory.
    private let work: Work?
    private let instance = Instance(.undoActions)

    /// - Parameter work: nil for a change that is not a command's. Not called if ``isSynchronous``.
    @usableFromInline init(_ target: AnyObject?, _ work: Work? = nil) {
        self.target = target
        targetID = target.map { ObjectIdentifier($0) }
        self.work = work
    }

    var isSynchronous: Bool { false }
    /// Whether undoing the change leaves something behind.
    var isIrreversible: Bool { false }
    /// Whether the change may merge with the one before.
    var isMergeable: Bool { false }
    /// How this change merges with `earlier`; nil if it does not. Runs user code.
    func merge(into earlier: UndoAction) -> UndoMerge? { nil }
    /// Whether there is nothing to undo.
    var hasNoEffect: Bool { false }

    private enum Call {
        case undo(goesOn: Bool)
        case redo
    }

    /// Undoes the change as a step of `turns`.
    ///
    /// - Parameters:
    ///   - goesOn: whether the undo was attempted before, and threw.
    ///   - actor: the caller's actor.
    /// - Returns: the task that undoes the change; nil if the change is undone.
    func undo(_ turns: Turnstile, goesOn: Bool, on actor: (any Actor)?) throws -> Task<Void, any Error>? {
        if isSynchronous {
            try turns.inStepNow { try undoNow(goesOn: goesOn) }
            return nil
        }
        return hasNoEffect ? nil : shieldedStep(.undo(goesOn: goesOn), turns, on: actor)
    }

    /// Redoes the change as a step of `turns`.
    nonisolated(nonsending) func redo(_ turns: Turnstile) async throws {
        if isSynchronous {
            _ = try await takingBackPartsOfNow(turns) { try redoNow($0) }
        } else {
            try await shieldedStep(.redo, turns, on: #isolation).value
            _ = turns.takeReplaced()
        }
    }

    /// Starts the work as a step, in a task that is never cancelled. Priority and task-local values are the caller's. The task runs on
    /// the caller's stack until it first suspends, unless the caller is on an actor, which the work, having no isolation, must leave.
    private func shieldedStep(_ call: Call, _ turns: Turnstile, on actor: (any Actor)?)
        -> Task<Void, any Error>
    {
        nonisolated(unsafe) let action = self  // nobody else uses it until the task has ended
        let mark = turns.stepOfNewTask()
        return mark.bound {
            actor == nil
                ? Task.immediate { try await action.doWork(call, turns, mark) }
                : Task { try await action.doWork(call, turns, mark) }
        }
    }

    @inline(__always)  // each frame of an awaiting call costs as much as a lock
    private nonisolated(nonsending) func doWork(_ call: Call, _ turns: Turnstile, _ mark: ReentrancyMark)
        async throws
    {
        guard let work else { fatalError("UndoAction: a change that awaits has no work") }
        nonisolated(unsafe) let action = self  // as in the caller
        mark.begin()
        defer { mark.end() }
        switch call {
        case .undo(let goesOn): _ = try await work(action, .ofUndo(goesOn: goesOn))
        case .redo:
            turns.replaced = try await takingBackParts(CommandContext()) { try await work(action, $0) }
        }
    }

    /// Runs without becoming a step, as does `redoNow`.
    func undoNow(goesOn: Bool) throws { fatalError("UndoAction: this action awaits; call undo()") }
    func redoNow() throws { _ = try leavingParts(.unasked()) { try redoNow($0) } }
    /// - Parameter context: collects the compensation that is registered.
    /// - Returns: as ``Work``.
    func redoNow(_ context: CommandContext) throws -> (any Sendable)? {
        fatalError("UndoAction: this action awaits; call redo()")
    }
}

/// A change made by a command, with its proof.
@usableFromInline final class CommandAction<C: UndoableCommand>: UndoAction {
    @usableFromInline let command: C
    @usableFromInline var proof: C.Undo

    @inlinable init(_ command: C, _ proof: C.Undo, _ target: AnyObject?) {
        self.command = command
        self.proof = proof
        super.init(target) { action, context in
            let action = unsafeDowncast(action, to: CommandAction<C>.self)
            if context.isCompensating {
                try await action.command.undo(action.proof, context)
                return nil
            }
            return action.replaceProof(by: try await action.command.redo(action.proof, context))
        }
    }

    /// - Returns: the objects that are replaced; nil if there are none.
    @inlinable func replaceProof(by redone: Performed<C.Output, C.Undo>) -> (any Sendable)? {
        let holdsNone = _isPOD(C.Output.self) && _isPOD(C.Undo.self)
        let replaced: (any Sendable)? = holdsNone ? nil : Performed(redone.output, undo: proof)
        proof = redone.undo
        return replaced
    }

    override var isSynchronous: Bool { command.isSynchronous }
    override var isIrreversible: Bool { command.undoability.isIrreversible }
    override var hasNoEffect: Bool { command.undoability == .noEffect }

    override func undoNow(goesOn: Bool) throws {
        if hasNoEffect { return }
        try command.undoNow(proof, .ofUndo(goesOn: goesOn))
    }

    override func redoNow(_ context: CommandContext) throws -> (any Sendable)? {
        replaceProof(by: try command.redoNow(proof, context))
    }

    override var isMergeable: Bool { command.isMergeable }

    override func merge(into earlier: UndoAction) -> UndoMerge? {
        if !command.isMergeable { return nil }
        return (command as? any MergeableCommand).flatMap { merge($0, into: earlier) }
    }

    private func merge<M: MergeableCommand>(_ command: M, into earlier: UndoAction) -> UndoMerge? {
        guard let earlier = earlier as? CommandAction<M>, let proof = proof as? M.Undo else { return nil }
        // A change has one target; changes with different targets must be removable separately.
        guard earlier.targetID == targetID else { return nil }
        return switch command.merging(proof, after: earlier.command, earlier.proof) {
        case .keepBoth: nil
        case .replace(let command, let undo): .replace(CommandAction<M>(command, undo, target))
        case .dropBoth: .dropBoth
        }
    }
}

/// A change made outside the stack, whose undo and redo never await.
final class ClosureAction: UndoAction {
    private let takeBack: () throws -> Void
    private let again: () throws -> Void

    init(
        _ undo: @escaping () throws -> Void, _ redo: @escaping () throws -> Void, _ target: AnyObject?
    ) {
        takeBack = undo
        again = redo
        super.init(target)
    }

    override var isSynchronous: Bool { true }
    override func undoNow(goesOn: Bool) throws { try takeBack() }
    override nonisolated(nonsending) func redo(_ turns: Turnstile) async throws {
        try turns.inStepNow { try again() }
    }
    override func redoNow() throws { try again() }
}

extension CommandContext {
    /// - Parameter goesOn: whether the undo was attempted before, and threw.
    fileprivate static func ofUndo(goesOn: Bool) -> CommandContext {
        var context = CommandContext()
        context.isCompensating = true
        context.goesOn = goesOn
        return context
    }

    /// The context of work that cannot be cancelled.
    static func unasked(_ parts: FailureParts? = nil) -> CommandContext {
        var context = CommandContext()
        context.looksAtTask = false
        context.parts = parts
        return context
    }
}

/// Calls `body`, which never awaits, as a step of `turns`, outside any run. If it throws, the compensation that it registered runs as
/// part of that step.
nonisolated(nonsending) func takingBackPartsOfNow<Value>(
    _ turns: Turnstile, _ body: (CommandContext) throws -> Value
) async throws -> Value {
    let parts = FailureParts(.continueOnFailure)
    let context = CommandContext.unasked(parts)
    do { return try turns.inStepNow { try body(context) } } catch {
        var failure: TransactionFailure?
        await turns.inStep { failure = await takeBack(parts, after: error, context) }
        throw failure ?? error
    }
}

extension Result where Failure == any Error {
    static func catching(_ body: () async throws -> Success) async -> Self {
        do { return .success(try await body()) } catch { return .failure(error) }
    }
}
