// UndoStep.swift - a step of an undo stack, and the changes that it is made of.

internal import CompositeOperationsBasics

/// Changes that are undone and redone as one.
struct UndoStep {
    let name: String?
    /// An object, as few steps have one: so a step without is smaller, and whether there is one is asked without a copy of it.
    private let mergeKey: MergeKey?
    /// When the last of its changes was made; of a step without a key whenever that is asked for, if ever.
    var time: Duration
    var actions: UndoActions

    init(_ name: String?, _ mergeKey: AnyHashable?, _ time: Duration, _ actions: UndoActions) {
        self.name = name
        self.mergeKey = mergeKey.map { MergeKey($0) }
        self.time = time
        self.actions = actions
    }

    var hasKey: Bool { mergeKey != nil }

    /// Whether both have one, and the same.
    func hasKey(of other: UndoStep) -> Bool {
        guard let mergeKey, let key = other.mergeKey else { return false }
        return mergeKey.value == key.value
    }
}

private final class MergeKey {
    let value: AnyHashable
    init(_ value: AnyHashable) { self.value = value }
}

/// Changes in their order: mostly one, which needs no memory of its own.
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

    /// - Complexity: O(all of them).
    mutating func replaceSubrange(_ range: Range<Int>, with actions: some Collection<UndoAction>) {
        var all = Array(self)
        all.replaceSubrange(range, with: actions)
        first = all.first
        others = Array(all.dropFirst())
    }
}

/// A change.
class UndoAction {
    /// Its target: see ``UndoStack/removeAll(target:)``.
    private(set) weak var target: AnyObject?
    /// Names one that is going, and that nobody can refer to any more.
    let targetID: ObjectIdentifier?
    private let instance = Instance(.undoActions)

    init(_ target: AnyObject?) {
        self.target = target
        targetID = target.map { ObjectIdentifier($0) }
    }

    var isSynchronous: Bool { false }
    /// To undo it leaves something.
    var isIrreversible: Bool { false }
    /// As a step of `turns`, as the other three.
    ///
    /// - Parameter goesOn: it was tried before, and threw.
    nonisolated(nonsending) func undo(_ turns: Turnstile, goesOn: Bool) async throws {
        try turns.inStepNow { try undoNow(goesOn: goesOn) }
    }
    nonisolated(nonsending) func redo(_ turns: Turnstile) async throws {
        try turns.inStepNow { try redoNow() }
    }
    /// Not as a step.
    func undoNow(goesOn: Bool) throws { fatalError("UndoAction: this one awaits") }
    func redoNow() throws { fatalError("UndoAction: this one awaits") }
}

/// A change that a command made, with the proof of it.
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

    /// The merger of this change with `earlier`; nil: there is none.
    func merge(into earlier: UndoAction) -> UndoMerge? {
        if !command.isMergeable { return nil }
        return (command as? any MergeableCommand).flatMap { merge($0, into: earlier) }
    }

    private func merge<M: MergeableCommand>(_ command: M, into earlier: UndoAction) -> UndoMerge? {
        guard let earlier = earlier as? CommandAction<M>, let proof = proof as? M.Undo else { return nil }
        // One change has one target; who has another must not go, or stay, with it.
        guard earlier.targetID == targetID else { return nil }
        return switch command.merging(proof, after: earlier.command, earlier.proof) {
        case .keepBoth: nil
        case .replace(let command, let undo): .replace(CommandAction<M>(command, undo, target))
        case .dropBoth: .dropBoth
        }
    }
}

/// A change that was made by somebody else, and never awaits.
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
    /// Of what nobody can ask to end.
    static func unasked(_ parts: FailureParts? = nil) -> CommandContext {
        var context = CommandContext()
        context.looksAtTask = false
        context.parts = parts
        return context
    }
}

/// Calls `body`, which never awaits, as a step of `turns`, and in no run; when it throws, what it registered is taken back as a part of
/// that step.
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
