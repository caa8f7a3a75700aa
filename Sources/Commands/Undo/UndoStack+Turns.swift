// UndoStack+Turns.swift - one call at a time.

extension UndoStack {
    @usableFromInline enum Entry {
        /// The call already has its turn: it comes from the body of a group.
        case joined
        case entered
        case mustWait
    }

    /// Takes a turn for a call that may come from the body of a group, unless another call has it.
    @usableFromInline
    func enterOrJoin() throws -> Entry {
        if try checkTurn(joinsGroup: true) { return .joined }
        return try turns.enterIfFree() ? .entered : .mustWait
    }

    @usableFromInline
    nonisolated(nonsending) func waitForTurn() async throws { try await turns.enter() }

    @usableFromInline
    func leave(_ entry: Entry) { if entry != .joined { leave() } }

    func leave() {
        while !afterTurn.isEmpty { afterTurn.removeFirst()() }
        turns.leave()
        onChange?()
    }

    /// - Parameter goesOn: whether the call is admitted to a broken stack in order to retry the leftovers of an undo.
    @inline(__always)  // each frame of an awaiting call costs as much as a lock
    nonisolated(nonsending) func inTurn<Value>(
        joinsGroup: Bool = false, goesOn: Bool = false,
        _ body: nonisolated(nonsending) () async throws -> Value
    ) async throws -> Value {
        if try checkTurn(joinsGroup: joinsGroup) {
            if isBroken { throw CommandUsageError.broken }
            return try await body()
        }
        if try !turns.enterIfFree() { try await turns.enter() }
        defer { leave() }
        if isBroken, !goesOn || unfinished == nil { throw CommandUsageError.broken }
        return try await body()
    }

    /// - Returns: whether the call already has its turn, because it comes from the body of a group.
    private func checkTurn(joinsGroup: Bool) throws -> Bool {
        // While no turn is taken, the caller is in no step and in no group; this check is cheaper than the next two.
        guard turns.isTaken else { return false }
        if turns.isInStep { throw CommandUsageError.reentrant }
        guard turns.isInGroup else { return false }
        guard joinsGroup else { throw CommandUsageError.busy }
        return true
    }

    func checkNoTurn() throws(CommandUsageError) {
        guard turns.isTaken else { return }
        throw turns.isInStep ? .reentrant : .busy
    }

    func nowInTurn(_ body: () throws -> Void) throws {
        turns.enterNow()
        defer { leave() }
        try turns.inStepNow(body)
    }
}
