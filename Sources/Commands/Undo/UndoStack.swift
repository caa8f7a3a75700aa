// UndoStack.swift - a history of changes that can be undone and redone.

internal import CompositeOperationsBasics

/// A history of changes, which can be undone and redone.
///
/// ```swift
/// try await stack.perform(Insert(text, at: position), name: "Typing", mergeKey: "typing")
/// try await stack.undo()
/// ```
///
/// The stack stays in one isolation, that of its creator. Awaiting calls queue up and run one at a time; each evaluates the stack at its
/// turn, so ten quick calls of ``undo()`` undo ten steps. A waiting call can be cancelled; one that has begun runs to completion. A call
/// from inside a running step throws ``CommandUsageError/reentrant``. So does a call from a task that was started by a step, or by the
/// body of a group, that is still running: the two might wait for each other. A detached task waits its turn.
///
/// - SeeAlso: `UndoManager`, and Qt's `QUndoStack`, the source of the clean mark and of merging.
public final class UndoStack {
    /// How a stack proceeds after a step that could not be undone.
    public enum FailedUndo: Hashable, Sendable {
        /// The stack is broken: calls that would run or undo anything throw ``CommandUsageError/broken`` until ``UndoStack/removeAll()``.
        case breaks
        /// The stack is emptied. Inside a group, the changes that the group has made are forgotten, too.
        case clears
        /// The step is kept for another attempt: ``UndoStack/undo()`` resumes with the change that could not be undone. Until that
        /// succeeds, the stack is broken for every other call. The leftovers of a failed command cannot be retried.
        case keeps
    }

    /// How a stack treats a group whose body throws.
    public enum FailedGroup: Hashable, Sendable {
        /// Its changes are undone.
        case rollBack
        /// Its changes become a step.
        case keep
    }

    /// Whether a change can be undone.
    public enum Recording: Hashable, Sendable {
        /// The change becomes a step.
        case step
        /// The change leaves no step, and undone steps can still be redone: the caller guarantees that the change commutes with all
        /// others.
        case none
    }

    @exclusivity(unchecked) private var history: UndoHistory
    private let mergeWindow: Duration
    private let clock: any Clock<Duration>
    private let onFailedUndo: FailedUndo
    private let turns = Turnstile()
    // Unchecked exclusivity below: the stack is in one isolation, and no user code runs during an access.
    /// The actions of the open group.
    @exclusivity(unchecked) private var group: UndoActions?
    /// The clean mark made while the group is open.
    @exclusivity(unchecked) private var groupMark = GroupMark.none
    @exclusivity(unchecked) private var afterTurn: [() -> Void] = []
    /// The leftovers of an undo that may be retried: see ``FailedUndo/keeps``.
    @exclusivity(unchecked) private var unfinished: Unfinished?
    private let instance = Instance(.undoStacks)

    /// Whether a step could not be undone; see ``FailedUndo/breaks``.
    @exclusivity(unchecked) public private(set) var isBroken = false

    /// Called after each change of the readable state, except when ``isBusy`` becomes true.
    @exclusivity(unchecked) public var onChange: (() -> Void)?

    /// Creates an empty, clean stack.
    ///
    /// - Parameters:
    ///   - limit: the maximum number of steps, beyond which the oldest are dropped; nil for no limit.
    ///   - mergeWindow: steps with equal merge keys become one if the next follows the last within this time.
    ///   - clock: the clock of `mergeWindow`.
    ///   - onFailedUndo: how the stack proceeds if a step cannot be undone.
    /// - Precondition: `limit` is greater than 0.
    public init(
        limit: Int? = nil, mergeWindow: Duration = .seconds(1),
        clock: any Clock<Duration> = ContinuousClock(),
        onFailedUndo: FailedUndo = .breaks
    ) {
        if let limit, limit < 1 { fatalError("UndoStack: the limit is \(limit), and must be at least 1") }
        history = UndoHistory(limit: limit)
        self.mergeWindow = mergeWindow
        self.clock = clock
        self.onFailedUndo = onFailedUndo
    }

    // MARK: Reading

    /// Whether there is a step to undo, or an undo to resume.
    public var canUndo: Bool { unfinished != nil || !isBroken && history.index > 0 }
    /// Whether there is a step to redo.
    public var canRedo: Bool { !isBroken && history.index < history.count }
    /// The name of the step that would be undone.
    public var undoName: String? {
        if let unfinished, !unfinished.isOfStep { return nil }
        return history.index > 0 ? history[history.index - 1].name : nil
    }
    /// The name of the step that would be redone.
    public var redoName: String? { history.index < history.count ? history[history.index].name : nil }
    /// The number of done steps.
    public var index: Int { history.index }
    /// The number of steps, done and undone.
    public var count: Int { history.count }
    /// Whether the state is that of the last ``markClean()``. False after an undo that failed, or that left irreversible changes, until
    /// the next mark.
    public var isClean: Bool {
        let changes = group?.count ?? 0
        switch groupMark {
        case .none: return changes == 0 && history.index == history.cleanIndex
        case .after(let count): return changes == count
        case .lost: return false
        }
    }
    /// The index at which the state is that of the last ``markClean()``; nil if no undo or redo leads back to it.
    public var cleanIndex: Int? { history.cleanIndex }
    /// Whether a call is running.
    public var isBusy: Bool { turns.isTaken }

    // MARK: Changes

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
    public nonisolated(nonsending) func perform<C: UndoableCommand>(
        _ command: C, name: String? = nil, target: AnyObject? = nil, mergeKey: AnyHashable? = nil,
        recording: Recording = .step
    ) async throws -> C.Output {
        let hasTurn = try checkTurn(joinsGroup: true)
        if !hasTurn { try await turns.enter() }
        defer { if !hasTurn { leave() } }
        if isBroken { throw CommandUsageError.broken }
        let performed: Performed<C.Output, C.Undo>
        do {
            if command.isSynchronous {
                performed = try await performHere(command)
            } else {
                performed = try await turns.inStep {
                    try await takingBackParts(CommandContext()) { try await command.perform($0) }
                }
            }
        } catch {
            if isIncomplete(error) { undoFailed() }
            throw error
        }
        if recording == .step { add(command, performed.undo, name, target, mergeKey) }
        return performed.output
    }

    /// A command that never awaits has no task, so it cannot be cancelled.
    private nonisolated(nonsending) func performHere<C: UndoableCommand>(_ command: C) async throws
        -> Performed<C.Output, C.Undo>
    {
        try await takingBackPartsOfNow(turns) { try command.performNow($0) }
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
            if recording == .step { add(command, performed.undo, name, target, mergeKey) }
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

    private func add<C: UndoableCommand>(
        _ command: C, _ proof: C.Undo, _ name: String?, _ target: AnyObject?, _ mergeKey: AnyHashable?
    ) {
        let action = CommandAction(command, proof, target)
        add(UndoStep(name, mergeKey, mergeKey == nil ? .zero : now, UndoActions(action))) {
            action.merge(into: $0)
        }
    }

    /// Throws unless a non-waiting call may change the stack now.
    private func checkMayChange() throws(CommandUsageError) {
        if turns.isTaken {
            if turns.isInStep { throw .reentrant }
            if !turns.isInGroup { throw .busy }
        }
        if isBroken { throw .broken }
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
        add(UndoStep(name, nil, .zero, UndoActions(ClosureAction(undo, redo, target))), nil)
        onChange?()
    }

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

    /// The next changes to undo: a step, or the leftovers of the last attempt.
    private var nextToUndo: Unfinished? {
        if let unfinished { return unfinished }
        if history.index == 0 { return nil }
        return Unfinished(actions: history.actions(at: history.index - 1), isOfStep: true)
    }

    private func wasUndone(_ last: Unfinished) {
        if unfinished != nil {
            unfinished = nil
            isBroken = false
        }
        if last.isOfStep { history.undone() }
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

    // MARK: Marks

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

    /// Forgets all steps, and repairs a broken stack. While a call is running, this takes effect when the call has ended.
    public func removeAll() {
        whenFree { stack in
            let left = stack.unfinished
            (stack.unfinished, stack.isBroken) = (nil, false)
            stack.change { $0.removeAll() }
            withExtendedLifetime(left) {}  // releasing it may run user code that reads the stack
        }
    }

    /// Forgets the changes with a target. While a call is running, this takes effect when the call has ended.
    ///
    /// A step of several changes, whether grouped or merged, keeps the changes with other targets, and is removed when none is left.
    /// Nothing is undone, so a clean mark beyond a forgotten change can no longer be reached.
    ///
    /// The target's `deinit` may call this.
    public func removeAll(target: AnyObject) {
        weak let living = target
        if let living {
            whenFree { $0.removeAll { $0.target === living } }
        } else {
            // The target is being deallocated, so it cannot be retained until the turn is over.
            let id = ObjectIdentifier(target)
            whenFree { $0.removeAll { $0.target == nil && $0.targetID == id } }
        }
    }

    private func removeAll(where isGone: @escaping (UndoAction) -> Bool) {
        let left = unfinished
        unfinished?.actions.removeAll(where: isGone)
        change { if $0.removeAll(where: isGone) { unfinished?.isOfStep = false } }
        // The changes that could not be undone are forgotten, so the step counts as undone, unless it was removed, too.
        if let unfinished, unfinished.actions.isEmpty { wasUndone(unfinished) }
        withExtendedLifetime(left) {}  // releasing it may run user code that reads the stack
    }

    private func whenFree(_ change: @escaping (UndoStack) -> Void) {
        guard isBusy else {
            change(self)
            onChange?()
            return
        }
        afterTurn.append { [unowned self] in change(self) }
    }

    // MARK: Turns

    /// - Parameter goesOn: whether the call is admitted to a broken stack in order to retry the leftovers of an undo.
    private nonisolated(nonsending) func inTurn<Value>(
        joinsGroup: Bool = false, goesOn: Bool = false,
        _ body: nonisolated(nonsending) () async throws -> Value
    ) async throws -> Value {
        if try checkTurn(joinsGroup: joinsGroup) {
            if isBroken { throw CommandUsageError.broken }
            return try await body()
        }
        try await turns.enter()
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

    private func leave() {
        while !afterTurn.isEmpty { afterTurn.removeFirst()() }
        turns.leave()
        onChange?()
    }

    private func checkNoTurn() throws(CommandUsageError) {
        guard turns.isTaken else { return }
        throw turns.isInStep ? .reentrant : .busy
    }

    private func nowInTurn(_ body: () throws -> Void) throws {
        turns.enterNow()
        defer { leave() }
        try turns.inStepNow(body)
    }

    private var now: Duration { clock.durationSinceStart(start) }
    private lazy var start = clock.anyNow

    // MARK: Steps

    /// - Parameter merge: merges the change with the only action of the previous step; nil if the change is never merged.
    private func add(_ step: consuming UndoStep, _ merge: ((UndoAction) -> UndoMerge?)?) {
        guard group == nil else {
            group! += step.actions
            return
        }
        var step = consume step
        var merged: UndoMerge?
        if let merge { merged = self.merged(step, merge) }
        if merged != nil, !step.hasKey { step.time = now }  // the step that it goes into may have one
        history.add(consume step, merged)
        releaseGone()
    }

    /// Works on a copy of the history, since user code called by `merge` may read the stack.
    private func merged(_ step: UndoStep, _ merge: (UndoAction) -> UndoMerge?) -> UndoMerge? {
        let history = history
        return history.merge(step, window: mergeWindow, merge)
    }

    private func change(_ body: (inout UndoHistory) -> Void) {
        body(&history)
        releaseGone()
    }

    private func releaseGone() {
        let gone = history.takeGone()
        withExtendedLifetime(gone) {}
    }

    private nonisolated(nonsending) func undo(_ last: Unfinished) async throws {
        for index in last.actions.indices.reversed() {
            let action = last.actions[index]
            do { try await action.undo(turns, goesOn: action === last.tried) } catch {
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

    private func loseCleanMark() {
        history.loseCleanMark()
        groupMark = group == nil ? .none : .lost
    }

    /// - Parameter left: the changes that may be retried.
    private func undoFailed(_ left: Unfinished? = nil) {
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
private struct Unfinished {
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

/// The clean mark made in a group, if any.
private enum GroupMark: Equatable {
    case none
    /// After this many changes of the group.
    case after(Int)
    /// At a state that cannot be reached again.
    case lost
}

extension Clock where Duration == Swift.Duration {
    /// The current instant, to measure from.
    fileprivate var anyNow: any InstantProtocol<Duration> { now }

    fileprivate func durationSinceStart(_ start: any InstantProtocol<Duration>) -> Duration {
        guard let start = start as? Instant else {
            fatalError("UndoStack: the instant was read from a clock other than the stack's")
        }
        return start.duration(to: now)
    }
}
