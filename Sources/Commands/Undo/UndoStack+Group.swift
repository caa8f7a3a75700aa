// UndoStack+Group.swift - several changes as one step, and the mark of the clean state.

extension UndoStack {
    /// Makes one step of all changes that `body` makes. A nested group joins the outer one. Only changes made by the body's own task
    /// belong to the group.
    ///
    /// - Parameter onFailure: how the changes are treated if `body` throws.
    /// - Throws: what `body` throws; ``CommandUsageError``; a `CancellationError` if the call is cancelled before its turn. An undo or
    ///   redo inside `body` throws ``CommandUsageError/busy``.
    public nonisolated(nonsending) func group<Value>(
        _ name: String? = nil, onFailure: FailedGroup = .rollBack,
        _ body: nonisolated(nonsending) () async throws -> Value
    ) async throws -> Value {
        try await inTurn(joinsGroup: true) {
            let isOutermost = group == nil
            if isOutermost { group = UndoActions() }
            let before = group!.count
            let result: Result<Value, any Error>
            do { result = .success(try await turns.inGroup(body)) } catch { result = .failure(error) }
            var actions = group!
            if isOutermost { group = nil }
            if case .failure = result, onFailure == .rollBack {
                let before = min(before, actions.count)  // an undo in it may have failed
                let made = UndoActions(actions[before...])
                actions.removeSubrange(before...)
                if case .after(let count) = groupMark, count > before { groupMark = .lost }
                if !isOutermost { group = actions }
                if unfinished == nil {
                    try await undo(Unfinished(actions: made, isOfStep: false))
                } else {
                    // The group's changes are undone after the leftovers of an inner group.
                    unfinished?.actions.insert(contentsOf: made, at: 0)
                }
            }
            if isOutermost { endGroup(name, actions) }
            return try result.get()
        }
    }

    /// Ends the outermost group, and makes its changes a step.
    private func endGroup(_ name: String?, _ actions: UndoActions) {
        let mark = groupMark
        groupMark = .none
        if mark == .after(0) { history.markClean() }
        if !actions.isEmpty {
            change {
                $0.add(UndoStep(name, nil, .zero, actions))
                $0.endMerging()
            }
        }
        switch mark {
        case .none, .after(0): break
        case .after(actions.count): history.markClean()
        case .after, .lost: history.loseCleanMark()
        }
    }

    /// Declares the current state clean: for example, saved.
    ///
    /// In the body of a group, this marks a state between two changes. Undo does not lead back to that state, unless it is the first or
    /// the last state of the group. While anything else is running, the state is unknown, so no state is marked.
    public func markClean() {
        if group != nil, turns.isInGroup, !turns.isInStep {
            groupMark = .after(group!.count)
        } else if !isBusy {
            history.markClean()
        } else if group != nil {
            groupMark = .lost
        } else {
            history.loseCleanMark()
        }
        onChange?()
    }

    func loseCleanMark() {
        history.loseCleanMark()
        groupMark = group == nil ? .none : .lost
    }
}

/// The clean mark made in a group, if any.
enum GroupMark: Equatable {
    case none
    /// After this many changes of the group.
    case after(Int)
    /// At a state that cannot be reached again.
    case lost
}
