// UndoStep.swift - a step of an undo stack, and the changes that it is made of.

internal import CompositeOperationsBasics

/// What is undone and redone as one.
final class UndoStep {
    let name: String?
    let mergeKey: AnyHashable?
    /// When the last of its changes was made.
    var time: Duration
    var actions: [UndoAction]
    private let instance = Instance(.undoSteps)

    init(
        _ name: String?, _ mergeKey: AnyHashable?, _ time: Duration, _ actions: [UndoAction]
    ) {
        self.name = name
        self.mergeKey = mergeKey
        self.time = time
        self.actions = actions
    }
}

/// A change.
class UndoAction {
    /// What it was made to: see ``UndoStack/removeAll(target:)``.
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
    nonisolated(nonsending) func undo() async throws { fatalError("UndoAction: abstract") }
    nonisolated(nonsending) func redo() async throws { fatalError("UndoAction: abstract") }
    func undoNow() throws { fatalError("UndoAction: this one awaits") }
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

    override var isIrreversible: Bool { command.undoability.isIrreversible }

    override nonisolated(nonsending) func undo() async throws {
        if command.undoability == .noEffect { return }
        let (command, proof) = (command, proof)
        var context = CommandContext()
        context.isCompensating = true
        try await shieldedHere { [context] in
            await Result<Void, any Error>.catching { try await command.undo(proof, context) }
        }.get()
    }

    override nonisolated(nonsending) func redo() async throws {
        let (command, proof) = (command, proof)
        self.proof = try await shieldedHere {
            await Result<Performed<C.Output, C.Undo>, any Error>.catching {
                try await takingBackParts(CommandContext()) { try await command.redo(proof, $0) }
            }
        }.get().undo
    }

    /// What becomes of this change after `earlier`; nil: nothing.
    func merge(into earlier: UndoAction) -> UndoMerge? {
        (command as? any MergeableCommand).flatMap { merge($0, into: earlier) }
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
    override nonisolated(nonsending) func undo() async throws { try takeBack() }
    override nonisolated(nonsending) func redo() async throws { try again() }
    override func undoNow() throws { try takeBack() }
    override func redoNow() throws { try again() }
}

extension Result where Failure == any Error {
    static func catching(_ body: () async throws -> Success) async -> Self {
        do { return .success(try await body()) } catch { return .failure(error) }
    }
}
