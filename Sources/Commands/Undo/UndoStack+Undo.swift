// UndoStack+Undo.swift - undo and redo, and what remains of an undo that failed.

extension UndoStack {
    /// Undoes a step. Its irreversible changes remain; their commands are only called to acknowledge that
    /// (``Undoability/irreversible(_:)``).
    ///
    /// - Returns: false if there is no step.
    /// - Throws: what the undo threw, after which ``FailedUndo`` determines how the stack proceeds; ``CommandUsageError``; a
    ///   `CancellationError` if the call is cancelled before its turn.
    @discardableResult
    public nonisolated(nonsending) func undo() async throws -> Bool {
        try await inTurn(goesOn: true) {
            guard let next = nextToUndo else { return false }
            try await undo(next)
            wasUndone(next)
            return true
        }
    }

    /// Redoes a step. The commands return new proofs.
    ///
    /// - Returns: false if there is no step.
    /// - Throws: what the redo threw, after its completed part is undone again; otherwise as ``undo()``.
    @discardableResult
    public nonisolated(nonsending) func redo() async throws -> Bool {
        try await inTurn {
            guard history.index < history.count else { return false }
            let actions = history.actions(at: history.index)
            for (index, action) in actions.enumerated() {
                do { try await action.redo(turns) } catch {
                    if isIncomplete(error) {
                        undoFailed()
                    } else {
                        try await undo(Unfinished(actions: UndoActions(actions[..<index]), isOfStep: false))
                    }
                    throw error
                }
            }
            history.redone()
            return true
        }
    }

    /// Undoes a step that never awaits, before the call returns.
    ///
    /// - Throws: ``CommandUsageError/notUndoable`` if the step awaits; ``CommandUsageError/busy`` while a call is running; otherwise as
    ///   ``undo()``.
    @discardableResult
    public func undoNow() throws -> Bool {
        try checkNoTurn()
        if isBroken, unfinished == nil { throw CommandUsageError.broken }
        guard let next = nextToUndo else { return false }
        guard next.actions.allSatisfy(\.isSynchronous) else { throw CommandUsageError.notUndoable }
        try nowInTurn {
            try undoNow(next)
            wasUndone(next)
        }
        return true
    }

    /// Redoes a step that never awaits, before the call returns.
    ///
    /// - Throws: as ``undoNow()``.
    @discardableResult
    public func redoNow() throws -> Bool {
        try checkNoTurn()
        if isBroken { throw CommandUsageError.broken }
        guard history.index < history.count else { return false }
        let actions = history.actions(at: history.index)
        guard actions.allSatisfy(\.isSynchronous) else { throw CommandUsageError.notUndoable }
        try nowInTurn {
            for (index, action) in actions.enumerated() {
                do { try action.redoNow() } catch {
                    if isIncomplete(error) {
                        undoFailed()
                    } else {
                        try undoNow(Unfinished(actions: UndoActions(actions[..<index]), isOfStep: false))
                    }
                    throw error
                }
            }
            history.redone()
        }
        return true
    }

    /// The next changes to undo: a step, or the leftovers of the last attempt.
    private var nextToUndo: Unfinished? {
        if let unfinished { return unfinished }
        if history.index == 0 { return nil }
        return Unfinished(actions: history.actions(at: history.index - 1), isOfStep: true)
    }

    func wasUndone(_ last: Unfinished) {
        if unfinished != nil {
            unfinished = nil
            isBroken = false
        }
        if last.isOfStep { history.undone() }
    }

    nonisolated(nonsending) func undo(_ last: Unfinished) async throws {
        for index in last.actions.indices.reversed() {
            let action = last.actions[index]
            do {
                try await action.undo(turns, goesOn: action === last.tried, on: #isolation)?.value
            } catch {
                undoFailed(last.left(from: index))
                throw error
            }
            if action.isIrreversible { loseCleanMark() }  // it has only been acknowledged
        }
    }

    private func undoNow(_ last: Unfinished) throws {
        for index in last.actions.indices.reversed() {
            let action = last.actions[index]
            do { try action.undoNow(goesOn: action === last.tried) } catch {
                undoFailed(last.left(from: index))
                throw error
            }
            if action.isIrreversible { loseCleanMark() }
        }
    }

    /// - Parameter left: the changes that may be retried.
    func undoFailed(_ left: Unfinished? = nil) {
        loseCleanMark()
        switch onFailedUndo {
        case .breaks: isBroken = true
        case .clears:
            let forgotten = group
            if group != nil { group = UndoActions() }
            change { $0.removeAll() }
            withExtendedLifetime(forgotten) {}
        case .keeps:
            // With leftovers that cannot be retried, the stack stays broken, whatever else is undone.
            if !isBroken || unfinished != nil { unfinished = left }
            isBroken = true
        }
    }
}

/// Changes to be undone, last first.
struct Unfinished {
    var actions: UndoActions
    /// Whether the changes belong to the last step that was done, which counts as undone once all of them are undone; false for the
    /// changes of a failed group or redo.
    var isOfStep: Bool
    /// The change whose undo was attempted before, and threw.
    var tried: UndoAction?

    /// The changes left by an undo that threw at `index`.
    func left(from index: Int) -> Unfinished {
        Unfinished(actions: UndoActions(actions[...index]), isOfStep: isOfStep, tried: actions[index])
    }
}
