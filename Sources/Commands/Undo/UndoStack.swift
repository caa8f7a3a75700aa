// UndoStack.swift - a history of changes that can be undone and redone.

internal import CompositeOperationsBasics

/// A history of changes: what was done can be undone, and what was undone can be redone.
///
/// ```swift
/// try await stack.perform(Insert(text, at: position), name: "Typing", mergeKey: "typing")
/// try await stack.undo()
/// ```
///
/// It lives in one isolation, that of whoever made it. Calls that await queue up, and run one at a time, each judging the
/// stack at its turn: ten quick calls of ``undo()`` undo ten steps. A call that waits can be cancelled; one that has begun is
/// finished. A call from inside a running step throws ``CommandUsageError/reentrant``; so does one of a task that a step, or the
/// body of a group, has begun, as long as that goes on: it would wait for what may wait for it. A detached task waits its turn.
///
/// - SeeAlso: `UndoManager`, and `QUndoStack` of Qt, whose clean mark and merging these are.
public final class UndoStack {
    /// How a stack goes on after a step that could not be undone.
    public enum FailedUndo: Hashable, Sendable {
        /// The stack is broken: calls that would run or undo something throw ``CommandUsageError/broken`` until ``UndoStack/removeAll()``.
        case breaks
        /// The stack is emptied; in a group, of the changes that the group has made, too.
        case clears
        /// The step waits for another try: ``UndoStack/undo()`` goes on with the change that could not be undone. Until that has
        /// succeeded it is broken for all else. The leftovers of a command that failed cannot be tried again.
        case keeps
    }

    /// How a stack treats a group whose body throws.
    public enum FailedGroup: Hashable, Sendable {
        /// Its changes are undone.
        case rollBack
        /// Its changes are a step.
        case keep
    }

    /// Whether a change can be undone.
    public enum Recording: Hashable, Sendable {
        /// The change becomes a step.
        case step
        /// The change leaves no step, and the steps to redo stay: the caller vouches that the change commutes with all others.
        case none
    }

    @exclusivity(unchecked) private var history: UndoHistory
    private let mergeWindow: Duration
    private let clock: any Clock<Duration>
    private let onFailedUndo: FailedUndo
    private let turns = Turnstile()
    // Unchecked exclusivity below: it is in one isolation, and no code of a user runs inside of an access.
    /// The actions of the open group.
    @exclusivity(unchecked) private var group: UndoActions?
    /// The mark that was made while that was open.
    @exclusivity(unchecked) private var groupMark = GroupMark.none
    @exclusivity(unchecked) private var afterTurn: [() -> Void] = []
    /// The leftovers of an undo that may be tried again: see ``FailedUndo/keeps``.
    @exclusivity(unchecked) private var unfinished: Unfinished?
    private let instance = Instance(.undoStacks)

    /// Whether a step could not be undone; see ``FailedUndo/breaks``.
    @exclusivity(unchecked) public private(set) var isBroken = false

    /// Called after each change of what can be read here, but not as ``isBusy`` becomes true.
    @exclusivity(unchecked) public var onChange: (() -> Void)?

    /// Creates an empty stack, which is clean.
    ///
    /// - Parameters:
    ///   - limit: how many steps it keeps; beyond, the oldest go. nil: all.
    ///   - mergeWindow: within which time steps with equal merge keys become one, counted from the last of them.
    ///   - clock: the clock of `mergeWindow`.
    ///   - onFailedUndo: what becomes of it when a step cannot be undone.
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

    /// Whether there is a step to undo, or to go on with.
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
    /// How many steps are done.
    public var index: Int { history.index }
    /// How many steps there are, done and undone.
    public var count: Int { history.count }
    /// Whether things are as they were at the last ``markClean()``. Not after an undo that failed, or that left what is
    /// irreversible, until things are marked again.
    public var isClean: Bool {
        let changes = group?.count ?? 0
        switch groupMark {
        case .none: return changes == 0 && history.index == history.cleanIndex
        case .after(let count): return changes == count
        case .lost: return false
        }
    }
    /// Where things are as at the last ``markClean()``; nil when there is no way back there.
    public var cleanIndex: Int? { history.cleanIndex }
    /// Whether a call runs.
    public var isBusy: Bool { turns.isTaken }

    // MARK: Changes

    /// Executes a command, which becomes a step. A success drops what could be redone; a failure changes nothing.
    ///
    /// A failure that left something behind is one that could not be undone: see ``FailedUndo``.
    ///
    /// - Parameters:
    ///   - name: for menus.
    ///   - target: see ``removeAll(target:)``.
    ///   - mergeKey: a step with an equal one, the last of which was done within the merge window, takes this one in.
    ///   - recording: whether it becomes a step.
    /// - Throws: what the command throws, or a ``TransactionFailure`` where parts of it were taken back; ``CommandUsageError``; a
    ///   `CancellationError` when it was cancelled before its turn.
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

    /// A command that never awaits has no task that could be cancelled: nobody asks it to end.
    private nonisolated(nonsending) func performHere<C: UndoableCommand>(_ command: C) async throws
        -> Performed<C.Output, C.Undo>
    {
        try await takingBackPartsOfNow(turns) { try command.performNow($0) }
    }

    /// Executes a command that never awaits, before the call returns: see ``perform(_:name:target:mergeKey:recording:)``.
    ///
    /// A command that throws must have left nothing behind. The closures of ``CommandContext/onFailure(_:)`` may await, and are not
    /// called: then a ``TransactionFailure`` says that something is left, and the stack is broken.
    ///
    /// - Throws: what the command throws; ``CommandUsageError/notUndoable`` when it awaits; ``CommandUsageError/busy`` while a call
    ///   runs, unless that is the group whose body calls; ``CommandUsageError/reentrant`` and ``CommandUsageError/broken``.
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

    /// Whether a call that does not wait may change something now.
    private func checkMayChange() throws(CommandUsageError) {
        if turns.isTaken {
            if turns.isInStep { throw .reentrant }
            if !turns.isInGroup { throw .busy }
        }
        if isBroken { throw .broken }
    }

    /// Makes a step of a change that has been made already, and that never awaits.
    ///
    /// - Throws: ``CommandUsageError/busy`` while a call runs, unless that is the group whose body calls;
    ///   ``CommandUsageError/reentrant`` and ``CommandUsageError/broken``.
    public func register(
        name: String? = nil, target: AnyObject? = nil, undo: @escaping () throws -> Void,
        redo: @escaping () throws -> Void
    ) throws(CommandUsageError) {
        try checkMayChange()
        add(UndoStep(name, nil, .zero, UndoActions(ClosureAction(undo, redo, target))), nil)
        onChange?()
    }

    /// Undoes a step. What is irreversible in it is told so (``Undoability/irreversible(_:)``), and stays.
    ///
    /// - Returns: false when there is none.
    /// - Throws: what the undo threw, and what becomes of the stack is its ``FailedUndo``; ``CommandUsageError``; a
    ///   `CancellationError` when it was cancelled before its turn.
    @discardableResult
    public nonisolated(nonsending) func undo() async throws -> Bool {
        try await inTurn(goesOn: true) {
            guard let next = nextToUndo else { return false }
            try await undo(next)
            wasUndone(next)
            return true
        }
    }

    /// The next to be undone: a step, or the leftovers of the last try.
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

    /// Redoes a step. The commands give new proofs.
    ///
    /// - Returns: false when there is none.
    /// - Throws: what the redo threw, and what it had redone is undone again; else as ``undo()``.
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
    /// - Throws: ``CommandUsageError/notUndoable`` when it awaits; ``CommandUsageError/busy`` while a call runs; else as
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

    /// Makes one step of all changes that `body` makes. A group inside of a group joins it. Only what the body's own task does
    /// is in it.
    ///
    /// - Parameter onFailure: what becomes of the changes when `body` throws.
    /// - Throws: what `body` throws; ``CommandUsageError``; a `CancellationError` when it was cancelled before its turn. To
    ///   undo or redo inside throws ``CommandUsageError/busy``.
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
                    // They come after what an inner group left.
                    unfinished?.actions.insert(contentsOf: made, at: 0)
                }
            }
            if isOutermost { endGroup(name, actions) }
            return try result.get()
        }
    }

    /// The outermost group is over, and what it did is a step.
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

    /// Says that things are as they should be: saved, for one.
    ///
    /// In the body of a group it marks what is there between two changes: no way leads back there, unless that is where the group
    /// ends. While something else is under way nobody knows what is there: then there is no mark.
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

    /// Forgets all steps; a broken stack is whole again. While a call runs, when that has ended.
    public func removeAll() {
        whenFree { stack in
            let left = stack.unfinished
            (stack.unfinished, stack.isBroken) = (nil, false)
            stack.change { $0.removeAll() }
            withExtendedLifetime(left) {}  // a user's code, which may read the stack
        }
    }

    /// Forgets the changes with a target. While a call runs, when that has ended.
    ///
    /// A step that is made of several changes, a group or what was merged, keeps those with other targets; it goes when none is
    /// left. Things stay as they are, so a mark that the way leads to by a forgotten change is not reached any more.
    ///
    /// The target's `deinit` may call this.
    public func removeAll(target: AnyObject) {
        weak let living = target
        if let living {
            whenFree { $0.removeAll { $0.target === living } }
        } else {
            // The target is going: nobody may keep it until the turn is over.
            let id = ObjectIdentifier(target)
            whenFree { $0.removeAll { $0.target == nil && $0.targetID == id } }
        }
    }

    private func removeAll(where isGone: @escaping (UndoAction) -> Bool) {
        let left = unfinished
        unfinished?.actions.removeAll(where: isGone)
        change { if $0.removeAll(where: isGone) { unfinished?.isOfStep = false } }
        // The changes that could not be undone are forgotten: so the step is undone, unless it went, too.
        if let unfinished, unfinished.actions.isEmpty { wasUndone(unfinished) }
        withExtendedLifetime(left) {}  // a user's code, which may read the stack
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

    /// - Parameter goesOn: it does with what an undo left, if that may be tried again.
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

    /// - Returns: whether the call has its turn already, in the group whose body calls.
    private func checkTurn(joinsGroup: Bool) throws -> Bool {
        // Nobody is in a step, or a group, while no turn is taken; and the answer takes longer than the question.
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

    /// - Parameter merge: what becomes of it and of the only action of the step before; nil: it never becomes a part of one.
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

    /// A user's code may read the stack: it is not being read itself meanwhile.
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

    /// - Parameter left: what could be tried again.
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
            // With leftovers that nobody can try again the stack stays broken, whatever else is undone.
            if !isBroken || unfinished != nil { unfinished = left }
            isBroken = true
        }
    }
}

/// Changes that are to be undone, last first.
private struct Unfinished {
    var actions: UndoActions
    /// The last step that was done is undone with the first of them; false: they are of a group that failed, or of a redo.
    var isOfStep: Bool
    /// The one that was tried before, and threw.
    var tried: UndoAction?

    /// The rest of an undo that threw at one of them.
    func left(from index: Int) -> Unfinished {
        Unfinished(actions: UndoActions(actions[...index]), isOfStep: isOfStep, tried: actions[index])
    }
}

/// Whether there was a mark in a group.
private enum GroupMark: Equatable {
    case none
    /// After so many of its changes.
    case after(Int)
    /// Where no way leads back.
    case lost
}

extension Clock where Duration == Swift.Duration {
    /// A reading of the clock, to measure from.
    fileprivate var anyNow: any InstantProtocol<Duration> { now }

    fileprivate func durationSinceStart(_ start: any InstantProtocol<Duration>) -> Duration {
        guard let start = start as? Instant else {
            fatalError("UndoStack: the instant belongs to another clock than the stack's")
        }
        return start.duration(to: now)
    }
}
