// ActionCore+Direct.swift - work that is called in its trigger, while nobody is told anything: no trigger, no notices.
//
// Invariants:
//   I1  whoever is in holds the mailbox in place, which was empty: so the work runs after all that was told before, and what is
//       triggered meanwhile from anywhere begins after it (ActionCore+Triggers, I4).
//   I2  that nobody watches is seen in the section that lets it in, or, of one that is refused by its precondition, after that was
//       read; whoever comes to watch later is told of the end, in the section that lets it out.

internal import Runs

/// The answer to a trigger that was tried directly.
@usableFromInline enum DirectEntry {
    /// The trigger is in: the caller calls the work, and then ``ActionCore/leave(_:)``.
    case isIn
    case refused(CancelReason.Kind)
    /// The trigger has to go the long way.
    case isNotDirect
}

extension ActionCore {
    /// Whether a trigger may be tried directly, in no group. A hint.
    @usableFromInline var isDirect: Bool { isUnwatched }

    /// A name for an execution without a trigger.
    @usableFromInline static func nextID() -> RunID { .next() }

    /// Lets one in whose precondition held.
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

    /// Lets it out.
    ///
    /// - Parameter end: which execution has ended, and how; called when somebody has come to watch.
    /// - Returns: whether it was asked to end.
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

    /// Lets one out that has failed.
    ///
    /// - Returns: what tells of that when it goes; nil: observers do, or nobody listens.
    @usableFromInline @inline(never) func leave(failing error: any Error, _ id: RunID) -> SeenWhenRead? {
        var isHeard = false
        _ = leave {
            isHeard = tellsFailures
            return (id, .failed(error))
        }
        return isHeard || !Diagnostics.areHeard ? nil : SeenWhenRead(id, unseen(error, of: id))
    }
}
