// UndoHistory.swift - the steps of an undo stack: pure state, which knows neither turns nor tasks.
//
// Invariants:
//   I1  0 ≤ index ≤ count ≤ limit: steps below `index` are done, the others undone.
//   I2  cleanIndex is where things are as at the last mark: nil, or 0 ... count.
//   I3  a step takes another one in only while it is the last thing that happened: `canMerge`.
//   I4  what goes is in `gone` until the caller takes it: to release it is a user's code, which may read the stack.

/// The steps, and where among them things are.
struct UndoHistory {
    private let limit: Int?
    /// With the steps that were evicted in front, as nil, until they are half of it.
    private var steps: [UndoStep?] = []
    private var head = 0
    private(set) var index = 0
    private(set) var cleanIndex: Int? = 0
    private var canMerge = false
    private var gone = Gone()

    /// The steps to be released.
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

    /// The steps to be released when no access to this is under way.
    mutating func takeGone() -> Gone {
        defer { gone = Gone() }
        return gone
    }

    /// The merger of a change that was made with the step before it. Calls a user's code: nothing is changed meanwhile.
    ///
    /// - Parameter merge: what becomes of the change and of the only action of that step.
    func merge(_ step: UndoStep, window: Duration, _ merge: (UndoAction) -> UndoMerge?) -> UndoMerge? {
        guard canMerge, index > 0, cleanIndex != index else { return nil }
        let last = self[index - 1]
        if last.actions.count == 1, let answer = merge(last.actions[0]) { return answer }
        guard step.hasKey(of: last), step.time - last.time <= window else {
            return nil
        }
        return .takeIn
    }

    /// A change was made.
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

    /// O(1), amortised.
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

    /// Nobody knows in which state things are: not as at the mark, as far as is known.
    mutating func loseCleanMark() { cleanIndex = nil }

    mutating func removeAll() {
        // Where things are is where they stay.
        cleanIndex = cleanIndex == index ? 0 : nil
        for position in 0..<count { gone.steps.append(self[position]) }
        steps = []
        head = 0
        index = 0
        canMerge = false
    }

    /// Forgets changes, which stay as they are, and the steps of which nothing is left.
    ///
    /// - Returns: whether the last step that was done is one of these.
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
            // On the way to the mark: nothing leads there any more.
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

/// The merger of two changes, one after the other.
enum UndoMerge {
    case replace(UndoAction)
    /// Both are in the step of the first.
    case takeIn
    case dropBoth
}
