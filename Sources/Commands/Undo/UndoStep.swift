// UndoStep.swift - a step of an undo stack, and the changes in it.

internal import CompositeOperationsBasics

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
class UndoAction {
    /// The target of the change: see ``UndoStack/removeAll(target:)``.
    private(set) weak var target: AnyObject?
    /// Identifies the target even while it is being deallocated, when weak references to it are nil.
    let targetID: ObjectIdentifier?
    private let instance = Instance(.undoActions)

    init(_ target: AnyObject?) {
        self.target = target
        targetID = target.map { ObjectIdentifier($0) }
    }

    var isSynchronous: Bool { false }
    /// Whether undoing the change leaves something behind.
    var isIrreversible: Bool { false }
    /// Runs as a step of `turns`, as does `redo`.
    ///
    /// - Parameter goesOn: whether the undo was attempted before, and threw.
    nonisolated(nonsending) func undo(_ turns: Turnstile, goesOn: Bool) async throws {
        try turns.inStepNow { try undoNow(goesOn: goesOn) }
    }
    nonisolated(nonsending) func redo(_ turns: Turnstile) async throws {
        try turns.inStepNow { try redoNow() }
    }
    /// Runs without becoming a step, as does `redoNow`.
    func undoNow(goesOn: Bool) throws { fatalError("UndoAction: this action awaits; call undo()") }
    func redoNow() throws { fatalError("UndoAction: this action awaits; call redo()") }
}

/// A change made by a command, with its proof.
final class CommandAction<C: UndoableCommand>: UndoAction {
    private let command: C
    private var proof: C.Undo

    init(_ command: C, _ proof: C.Undo, _ target: AnyObject?) {
        self.command = command
        self.proof = proof
        super.init(target)
    }

    override var isSynchronous: Bool { command.isSynchronous }
    override var isIrreversible: Bool { command.undoability.isIrreversible }

    private func undoContext(goesOn: Bool) -> CommandContext {
        var context = CommandContext()
        context.isCompensating = true
        context.goesOn = goesOn
        return context
    }

    override nonisolated(nonsending) func undo(_ turns: Turnstile, goesOn: Bool) async throws {
        if command.isSynchronous { return try await super.undo(turns, goesOn: goesOn) }
        if command.undoability == .noEffect { return }
        let (command, proof, context) = (command, proof, undoContext(goesOn: goesOn))
        try await turns.inShieldedStep { try await command.undo(proof, context) }
    }

    override func undoNow(goesOn: Bool) throws {
        if command.undoability == .noEffect { return }
        try command.undoNow(proof, undoContext(goesOn: goesOn))
    }

    override nonisolated(nonsending) func redo(_ turns: Turnstile) async throws {
        let (command, proof) = (command, proof)
        if command.isSynchronous {
            self.proof = try await takingBackPartsOfNow(turns) { try command.redoNow(proof, $0) }.undo
            return
        }
        self.proof = try await turns.inShieldedStep {
            try await takingBackParts(CommandContext()) { try await command.redo(proof, $0) }
        }.undo
    }

    override func redoNow() throws {
        proof = try leavingParts(.unasked()) { try command.redoNow(proof, $0) }.undo
    }

    /// How this change merges with `earlier`; nil if it does not.
    func merge(into earlier: UndoAction) -> UndoMerge? {
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
    override func redoNow() throws { try again() }
}

extension CommandContext {
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
        throw await turns.inStep { await takeBack(parts, after: error, context) } ?? error
    }
}

extension Result where Failure == any Error {
    static func catching(_ body: () async throws -> Success) async -> Self {
        do { return .success(try await body()) } catch { return .failure(error) }
    }
}
