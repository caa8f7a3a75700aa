// UndoStack+Perform.swift - changes that become steps.

extension UndoStack {
    /// Executes a command, which becomes a step. Success drops the steps that could be redone; failure changes nothing.
    ///
    /// A failure that leaves something behind counts as a failed undo: see ``FailedUndo``.
    ///
    /// - Parameters:
    ///   - name: the name of the step, for menus.
    ///   - target: see ``removeAll(target:)``.
    ///   - mergeKey: a preceding step with an equal key absorbs this one if its last change was made within the merge window.
    ///   - recording: whether the change becomes a step.
    /// - Throws: what the command throws, or a ``TransactionFailure`` if it was not fully rolled back; ``CommandUsageError``; a
    ///   `CancellationError` if the call is cancelled before its turn.
    @inlinable  // if the command's type is known, no metadata look-up is needed
    public nonisolated(nonsending) func perform<C: UndoableCommand>(
        _ command: C, name: String? = nil, target: AnyObject? = nil, mergeKey: AnyHashable? = nil,
        recording: Recording = .step
    ) async throws -> C.Output {
        let entry = try enterOrJoin()
        if entry == .mustWait { try await waitForTurn() }
        defer { leave(entry) }
        if isBroken { throw CommandUsageError.broken }
        var performed: Performed<C.Output, C.Undo>?
        if command.isSynchronous {
            try await inSynchronousStep { performed = try command.performNow($0) }
        } else {
            try await inAwaitingStep { performed = try await command.perform($0) }
        }
        guard let performed else { fatalError("UndoStack: a step ended without a result") }
        if recording == .step { add(CommandAction(command, performed.undo, target), name, mergeKey) }
        return performed.output
    }

    /// Calls `body`, which awaits, as a step. It returns nothing: a call whose result has an unknown size takes twice as long.
    @usableFromInline
    nonisolated(nonsending) func inAwaitingStep(
        _ body: nonisolated(nonsending) (CommandContext) async throws -> Void
    ) async throws {
        // As `takingBackParts`, whose closure would be one more frame.
        let parts = FailureParts(.continueOnFailure)
        let context = CommandContext(parts)
        do {
            try await turns.inStep {
                do { try await body(context) } catch {
                    throw await takeBack(parts, after: error, context) ?? error
                }
            }
        } catch {
            if isIncomplete(error) { undoFailed() }
            throw error
        }
    }

    /// Calls `body`, which never awaits, as a step. Cancellation of the caller's task does not reach it.
    @usableFromInline
    nonisolated(nonsending) func inSynchronousStep(_ body: (CommandContext) throws -> Void) async throws {
        do { try await takingBackPartsOfNow(turns, body) } catch {
            if isIncomplete(error) { undoFailed() }
            throw error
        }
    }

    /// Executes a command that never awaits, before the call returns: see ``perform(_:name:target:mergeKey:recording:)``.
    ///
    /// A command that throws must leave nothing behind. The closures of ``CommandContext/onFailure(_:)`` are not called, since they may
    /// await: if there are any, a ``TransactionFailure`` reports leftovers, and the call counts as a failed undo: see ``FailedUndo``.
    ///
    /// - Throws: what the command throws; ``CommandUsageError/notUndoable`` if it awaits; ``CommandUsageError/busy`` while another call is
    ///   running, unless this call comes from the body of a running group; ``CommandUsageError/reentrant`` and
    ///   ``CommandUsageError/broken``.
    public func performNow<C: UndoableCommand>(
        _ command: C, name: String? = nil, target: AnyObject? = nil, mergeKey: AnyHashable? = nil,
        recording: Recording = .step
    ) throws -> C.Output {
        guard command.isSynchronous else { throw CommandUsageError.notUndoable }
        func perform() throws -> C.Output {
            let performed: Performed<C.Output, C.Undo>
            do {
                performed = try turns.inStepNow {
                    try leavingParts(.unasked()) { try command.performNow($0) }
                }
            } catch {
                if isIncomplete(error) { undoFailed() }
                throw error
            }
            if recording == .step { add(CommandAction(command, performed.undo, target), name, mergeKey) }
            return performed.output
        }
        try checkMayChange()
        if turns.isInGroup {
            defer { onChange?() }
            return try perform()
        }
        turns.enterNow()
        defer { leave() }
        return try perform()
    }

    /// Records a step for a change that was already made, and whose undo and redo never await.
    ///
    /// - Throws: ``CommandUsageError/busy`` while another call is running, unless this call comes from the body of a running group;
    ///   ``CommandUsageError/reentrant`` and ``CommandUsageError/broken``.
    public func register(
        name: String? = nil, target: AnyObject? = nil, undo: @escaping () throws -> Void,
        redo: @escaping () throws -> Void
    ) throws(CommandUsageError) {
        try checkMayChange()
        add(UndoStep(name, nil, .zero, UndoActions(ClosureAction(undo, redo, target))))
        onChange?()
    }

    /// Throws unless a non-waiting call may change the stack now.
    private func checkMayChange() throws(CommandUsageError) {
        if turns.isTaken {
            if turns.isInStep { throw .reentrant }
            if !turns.isInGroup { throw .busy }
        }
        if isBroken { throw .broken }
    }
}
