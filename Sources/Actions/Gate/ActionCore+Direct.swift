// ActionCore+Direct.swift - inline work without observers: no trigger object, no notices.
//
// Invariants:
//   I1  a direct execution holds the inline mailbox, which was empty. So the work runs after all earlier notices, and whatever is
//       triggered in the meantime, by any thread, begins after it (ActionCore+Triggers, I4).
//   I2  the absence of observers is checked in the critical section that admits the execution, or, if its precondition refuses it,
//       after the precondition was read. An observer that registers later is notified of the end, in the section that releases the
//       slot.

internal import Runs

/// The result of an attempt at direct execution.
@usableFromInline enum DirectEntry {
    /// The execution is admitted: the caller calls the work, and then ``ActionCore/leave(_:)``.
    case isIn
    case refused(CancelReason.Kind)
    /// The trigger must take the slow path.
    case isNotDirect
}

extension ActionCore {
    /// Whether direct execution may be attempted, for an action in no group. A hint.
    @usableFromInline var isDirect: Bool { isUnwatched }

    /// An ID for an execution without a trigger.
    @usableFromInline static func nextID() -> RunID { .next() }

    /// Admits an execution whose precondition held.
    @usableFromInline func enter() -> DirectEntry {
        guard inline.claimEmpty() else { return .isNotDirect }
        let entry = gate.transition(ofOnly: self) { bits -> DirectEntry in
            guard isUnwatched else { return .isNotDirect }  // I2
            var word = GateWord(bits: bits)
            switch word.admit(policy) {
            case .start:
                (isInDirectly, isAskedToEnd) = (true, false)
                bits = word.bits
                return .isIn
            case .refuse(let why): return .refused(why.kind)
            case .wait, .replace: return .isNotDirect
            }
        } then: {
            $0
        }
        if case .isIn = entry { flips.reset() } else { inline.giveBack() }
        return entry
    }

    /// Ends a direct execution.
    ///
    /// - Parameter end: returns which execution has ended, and how; called if there is an observer by now.
    /// - Returns: whether cancellation was requested.
    @usableFromInline func leave(_ end: () -> (RunID, Outcome<any Sendable>)) -> Bool {
        let (isWatched, isAsked) = gate.transition(ofOnly: self) {
            self.end(ofOnly: &$0)
        } then: { handsOver in
            isInDirectly = false
            let isWatched = !isUnwatched
            if isWatched {
                let (id, outcome) = end()
                appendEnd(id, outcome)  // I2
            }
            if handsOver { appendNext() }
            return (isWatched, isAskedToEnd)
        }
        if isWatched { deliver() }  // at other places; in place it is this thread that delivers
        inline.giveBack()
        return isAsked
    }

    /// Ends a direct execution that failed.
    ///
    /// - Returns: an object that reports the failure when released; nil if observers are notified, or diagnostics are off.
    @usableFromInline @inline(never) func leave(failing error: any Error, _ id: RunID) -> SeenWhenRead? {
        var isHeard = false
        _ = leave {
            isHeard = tellsFailures
            return (id, .failed(error))
        }
        return isHeard || !Diagnostics.areHeard ? nil : SeenWhenRead(id, unseen(error, of: id))
    }
}
