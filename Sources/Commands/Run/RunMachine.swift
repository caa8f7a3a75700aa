// RunMachine.swift - where a run is on its way, as a pure state machine: decides, and does nothing else.
//
//     ready ─ accept ─> accepted
//       └──── claim, begin ────┴─> executing ─ end ─> finished, failed       with the outcome, which is there once
//                                      ^                  │
//                                      │               undo begins
//                 claimed again        │                  v
//     undone ──────────────────────────┘    broken <── undoing ──> undone
//
// Invariants:
//   I1  the outcome is decided by one call of `end`: from `executing`, or, where nothing ran, from `ready` or `accepted`.
//   I2  one claim or turn takes the run from `ready` or `accepted` to `executing`.
//   I3  what runs after that was undone: its end is not the outcome.

/// A claim on a run, which allows one execution.
enum RunClaim: Equatable {
    /// The one that the token names.
    case first
    /// An execution after an undo: it answers its caller alone.
    case again
}

/// Where a run is on its way.
struct RunMachine: Equatable {
    /// From which states an end without a run is possible.
    enum Origin {
        case ready
        case beforeStart
    }

    private(set) var state = CommandState.ready
    private(set) var hasOutcome = false
    /// Whether it runs in its turn on a lane, or did.
    private(set) var holdsSlot = false

    /// A lane takes it.
    ///
    /// - Returns: whether none has it, and nobody ran it.
    mutating func accept() -> Bool {
        guard state == .ready else { return false }
        state = .accepted
        return true
    }

    /// Its turn has come.
    ///
    /// - Returns: whether there is anything to run.
    mutating func begin() -> Bool {
        guard state == .accepted else { return false }
        state = .executing
        holdsSlot = true
        return true
    }

    /// Somebody runs it.
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

    /// Ends it.
    ///
    /// - Parameter origin: where it was not claimed.
    /// - Returns: whether this end is the outcome.
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

    /// Ends one that was claimed again.
    ///
    /// - Parameter isRolledBack: whether it left nothing that could have been taken back.
    mutating func endAgain(finished: Bool, isRolledBack: Bool) {
        state = finished ? .finished : isRolledBack ? .undone : .broken
    }

    /// - Parameter goesOn: one that has failed may be tried again; the caller sees to it that it was an undo.
    /// - Throws: why nothing can be undone now.
    mutating func beginUndo(goesOn: Bool) throws(CommandUsageError) {
        switch state {
        case .broken where goesOn, .finished: state = .undoing
        case .ready, .accepted, .failed: throw .notExecuted
        case .executing, .undoing: throw .busy
        case .undone: throw .alreadyUndone
        case .broken: throw .broken
        }
    }

    /// Notes that the command was undone, or could not be.
    mutating func endUndo(succeeded: Bool) { state = succeeded ? .undone : .broken }
}
