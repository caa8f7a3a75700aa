// RunMachine.swift - the state of a run, as a pure state machine: it decides, and has no effects.
//
//     ready ─ accept ─> accepted
//       └──── claim, begin ────┴─> executing ─ end ─> finished, failed       with the outcome, which is set once
//                                      ^                  │
//                                      │               undo begins
//                 claimed again        │                  v
//     undone ──────────────────────────┘    broken <── undoing ──> undone
//
// Invariants:
//   I1  one call of `end` decides the outcome: from `executing`, or, if nothing ran, from `ready` or `accepted`.
//   I2  one claim or turn takes the run from `ready` or `accepted` to `executing`.
//   I3  the end of a run that follows an undo is not the outcome.

/// A claim on a run, which allows one execution.
enum RunClaim: Equatable {
    /// The execution that the token names.
    case first
    /// An execution after an undo, which reports only to its caller.
    case again
}

/// The state of a run.
struct RunMachine: Equatable {
    /// The states from which a run may end without having executed.
    enum Origin {
        case ready
        case beforeStart
    }

    private(set) var state = CommandState.ready
    private(set) var hasOutcome = false
    /// Whether the run executes, or executed, in its turn on a lane.
    private(set) var holdsSlot = false

    /// A lane accepts the run.
    ///
    /// - Returns: whether no lane has accepted it before, and it has not run.
    mutating func accept() -> Bool {
        guard state == .ready else { return false }
        state = .accepted
        return true
    }

    /// The run's turn has come.
    ///
    /// - Returns: whether there is anything to run.
    mutating func begin() -> Bool {
        guard state == .accepted else { return false }
        state = .executing
        holdsSlot = true
        return true
    }

    /// Claims the run for an execution.
    mutating func claim() throws(CommandUsageError) -> RunClaim {
        switch state {
        case .ready, .accepted:
            state = .executing
            return .first
        case .undone:
            state = .executing
            return .again
        case .broken: throw .broken
        default: throw .alreadyExecuted
        }
    }

    /// Ends the run.
    ///
    /// - Parameter origin: nil for a claimed run; otherwise, the states from which the run may be ended.
    /// - Returns: whether this end became the outcome.
    mutating func end(finished: Bool, from origin: Origin?) -> Bool {
        switch (origin, state) {
        case (nil, .executing), (.ready, .ready), (.beforeStart, .ready), (.beforeStart, .accepted): break
        default: return false
        }
        if hasOutcome { return false }
        hasOutcome = true
        state = finished ? .finished : .failed
        return true
    }

    /// Ends an execution that was claimed again.
    ///
    /// - Parameter isRolledBack: whether it left nothing behind that could have been undone.
    mutating func endAgain(finished: Bool, isRolledBack: Bool) {
        state = finished ? .finished : isRolledBack ? .undone : .broken
    }

    /// - Parameter goesOn: whether the undo of a broken run may be retried. The caller must know that an undo
    ///   broke the run.
    /// - Throws: the reason why the run cannot be undone now.
    mutating func beginUndo(goesOn: Bool) throws(CommandUsageError) {
        switch state {
        case .broken where goesOn, .finished: state = .undoing
        case .ready, .accepted, .failed: throw .notExecuted
        case .executing, .undoing: throw .busy
        case .undone: throw .alreadyUndone
        case .broken: throw .broken
        }
    }

    /// Records that the command was undone, or could not be.
    mutating func endUndo(succeeded: Bool) { state = succeeded ? .undone : .broken }
}
