// UndoHistory.swift - the steps of an undo stack: pure state, without turns or tasks.
//
// Invariants:
//   I1  0 ≤ index ≤ count ≤ limit: steps below `index` are done, the others are undone.
//   I2  cleanIndex is the index of the marked clean state: nil, or 0 ... count.
//   I3  a step absorbs the next change only if nothing else has happened in between: `canMerge`.
//   I4  removed objects stay in `gone` until the caller takes them: releasing them may run user code that reads the
//       stack.

/// The steps, and the current position among them.
struct UndoHistory {
    private let limit: Int?
    /// Evicted steps stay in front as nil, until they are half of the array.
    private var steps: [UndoStep?] = []
    private var head = 0
    private(set) var index = 0
    private(set) var cleanIndex: Int? = 0
    private var canMerge = false
    private var gone = Gone()

    /// The removed objects, to be released by the caller.
    struct Gone {
        fileprivate var steps: [UndoStep] = []
        fileprivate var actions: [UndoAction] = []
    }

    init(limit: Int?) { self.limit = limit }

    var count: Int { steps.count - head }

    private(set) subscript(position: Int) -> UndoStep {
        _read { yield steps[head + position].unsafelyUnwrapped }
        _modify { yield &steps[head + position]! }
    }

    /// The changes of a step.
    func actions(at position: Int) -> UndoActions { steps[head + position]?.actions ?? UndoActions() }

    /// Returns the removed objects, to be released when the history is not being accessed.
    mutating func takeGone() -> Gone {
        defer { gone = Gone() }
        return gone
    }

    /// How a change that was made merges with the previous step. Runs user code; changes nothing.
    ///
    /// - Parameter merge: merges the change with the only action of that step.
    func merge(_ step: UndoStep, window: Duration, _ merge: (UndoAction) -> UndoMerge?) -> UndoMerge? {
        guard canMerge, index > 0, cleanIndex != index else { return nil }
        let last = self[index - 1]
        if last.actions.count == 1, let answer = merge(last.actions[0]) { return answer }
        guard step.hasKey(of: last), step.time - last.time <= window else {
            return nil
        }
        return .takeIn
    }

    /// Adds a change that was made.
    ///
    /// - Parameter merge: see ``merge(_:window:_:)``.
    mutating func add(_ step: consuming UndoStep, _ merge: UndoMerge? = nil) {
        dropUndone()
        switch merge {
        case .replace(let action)?:
            gone.actions.append(self[index - 1].actions[0])
            self[index - 1].actions = UndoActions(action)
            self[index - 1].time = step.time
        case .takeIn?:
            self[index - 1].actions += step.actions
            self[index - 1].time = step.time
        case .dropBoth?:
            gone.steps.append(steps.removeLast()!)
            index -= 1
            canMerge = false
        case nil:
            steps.append(consume step)
            index += 1
            canMerge = true
            if let limit, count > limit { evict() }
        }
    }

    private mutating func dropUndone() {
        if let clean = cleanIndex, clean > index { cleanIndex = nil }
        if index == count { return }
        for position in index..<count { gone.steps.append(self[position]) }
        steps.removeLast(count - index)
    }

    /// Amortised O(1).
    private mutating func evict() {
        gone.steps.append(self[0])
        steps[head] = nil
        head += 1
        if head * 2 > steps.count {
            steps.removeFirst(head)
            head = 0
        }
        index -= 1
        cleanIndex = cleanIndex.flatMap { $0 > 0 ? $0 - 1 : nil }
    }

    mutating func undone() {
        index -= 1
        canMerge = false
    }

    mutating func redone() {
        index += 1
        canMerge = false
    }

    mutating func endMerging() { canMerge = false }

    mutating func markClean() { cleanIndex = index }

    /// The state is unknown, so it cannot be assumed to be clean.
    mutating func loseCleanMark() { cleanIndex = nil }

    mutating func removeAll() {
        // Forgetting steps does not change the state, so a clean state stays clean.
        cleanIndex = cleanIndex == index ? 0 : nil
        for position in 0..<count { gone.steps.append(self[position]) }
        steps = []
        head = 0
        index = 0
        canMerge = false
    }

    /// Forgets changes without undoing them, and removes the steps that become empty.
    ///
    /// - Returns: whether the last step that was done was removed.
    mutating func removeAll(where isGone: (UndoAction) -> Bool) -> Bool {
        var kept: [UndoStep?] = []
        var (newIndex, newClean) = (index, cleanIndex)
        var (isChanged, isLastGone) = (false, false)
        for position in 0..<count {
            var step = self[position]
            let actions = step.actions
            step.actions.removeAll(where: isGone)
            let left = step.actions
            if !left.isEmpty { kept.append(step) }
            if left.count == actions.count { continue }
            isChanged = true
            gone.actions += actions
            // The change lies between the current state and the mark, which can no longer be reached.
            if let clean = cleanIndex, min(clean, index) <= position, position < max(clean, index) {
                newClean = nil
            }
            if !left.isEmpty { continue }
            gone.steps.append(step)
            isLastGone = isLastGone || position == index - 1
            if position < index { newIndex -= 1 }
            if let clean = cleanIndex, position < clean { newClean = newClean.map { $0 - 1 } }
        }
        if isChanged {
            (steps, head, index, cleanIndex, canMerge) = (kept, 0, newIndex, newClean, false)
        }
        return isLastGone
    }
}

/// How two successive changes merge.
enum UndoMerge {
    case replace(UndoAction)
    /// The second change joins the step of the first.
    case takeIn
    case dropBoth
}
