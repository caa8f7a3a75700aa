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

    // Internal for the extensions in UndoStack+....swift. Unchecked exclusivity: the stack is in one isolation, and no user code runs
    // during an access.
    @exclusivity(unchecked) var history: UndoHistory
    private let mergeWindow: Duration
    private let clock: any Clock<Duration>
    let onFailedUndo: FailedUndo
    let turns = Turnstile()
    /// The actions of the open group.
    @exclusivity(unchecked) var group: UndoActions?
    /// The clean mark made while the group is open.
    @exclusivity(unchecked) var groupMark = GroupMark.none
    @exclusivity(unchecked) var afterTurn: [() -> Void] = []
    /// The leftovers of an undo that may be retried: see ``FailedUndo/keeps``.
    @exclusivity(unchecked) var unfinished: Unfinished?
    private let instance = Instance(.undoStacks)

    /// Whether a step could not be undone; see ``FailedUndo/breaks``.
    @exclusivity(unchecked) public internal(set) var isBroken = false

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

    // MARK: Steps

    @usableFromInline
    func add(_ action: UndoAction, _ name: String?, _ mergeKey: AnyHashable?) {
        add(UndoStep(name, mergeKey, mergeKey == nil ? .zero : now, UndoActions(action)), of: action)
    }

    /// - Parameter action: the only action of the step if it may merge with the step before.
    func add(_ step: consuming UndoStep, of action: UndoAction? = nil) {
        guard group == nil else {
            group! += step.actions
            return
        }
        var step = consume step
        var merged: UndoMerge?
        if let action, step.hasKey || action.isMergeable {
            let history = history  // a copy, since user code that merges may read the stack
            merged = history.merge(step, window: mergeWindow) { action.merge(into: $0) }
        }
        if merged != nil, !step.hasKey { step.time = now }  // the step that it goes into may have one
        history.add(consume step, merged)
        releaseGone()
    }

    func change(_ body: (inout UndoHistory) -> Void) {
        body(&history)
        releaseGone()
    }

    private func releaseGone() {
        let gone = history.takeGone()
        withExtendedLifetime(gone) {}
    }

    private var now: Duration { clock.durationSinceStart(start) }
    private lazy var start = clock.anyNow
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
