// LiveRuns.swift - the current activity of a journal: the keys in use, and whether it is being replayed or recovered.
//
// Invariants:
//   I1  a key is reserved by one run at a time, from before the run looks it up until the run's end is durable. So two runs
//       never write the same key. A caller that only reads what is recorded needs no reservation.
//   I2  runs and a replay exclude each other; so do a replay and a recovery, and two recoveries.

internal import CompositeOperationsBasics
@_spi(Faces) internal import Runs

/// The end of a run, for callers that wait with the same key.
final class RunEnd: Sendable {
    private struct State {
        var isOver = false
        var waiters = WaitList()
    }

    private let state = Guarded(State())
    private let instance = Instance(.runEnds)

    /// Returns at the end of the run, or when the task is cancelled.
    func wait() async {
        _ = await Waiter.wait { waiter in
            state.withLock { state in state.isOver ? .isOver : state.waiters.append(waiter) }
        } orCancelledBy: { [state] waiter in
            state.withLock { $0.waiters.remove(waiter) }
        }
    }

    func announce() {
        state.withLock { state in
            state.isOver = true
            return state.waiters.takeAll()
        }.wake()
    }
}

/// The active runs of a journal.
final class LiveRuns: Sendable {
    private struct State {
        var count = 0
        var keys: [String: RunEnd] = [:]
        var isReplaying = false
        var isRecovering = false
        /// The unfinished runs of earlier processes, and the runs of this process that could not be ended.
        var unfinished: [Int64: JournalRun]
        var needsRecovery: Bool

        /// The reason that nothing can begin, if any.
        var objection: JournalError? { isReplaying ? .busy : needsRecovery ? .needsRecovery : nil }
    }

    private let state: Guarded<State>

    init(unfinished: [Int64: JournalRun]) {
        state = Guarded(State(unfinished: unfinished, needsRecovery: !unfinished.isEmpty))
    }

    /// The answer to a caller that wants to begin a run.
    enum Beginning {
        /// Its keys are reserved; the caller must call `end(_:_:left:)`.
        case begun(RunEnd)
        /// Another run has one of its keys, until that run ends.
        case taken(RunEnd)
    }

    /// Begins a run, if no other run has its keys.
    func begin(_ keys: [String]) throws -> Beginning {
        let answer = state.withLock { state -> Result<Beginning, JournalError> in
            if let objection = state.objection { return .failure(objection) }
            if let other = keys.compactMap({ key in state.keys[key] }).first {
                return .success(.taken(other))
            }
            let mine = RunEnd()
            for key in keys { state.keys[key] = mine }
            state.count += 1
            return .success(.begun(mine))
        }
        return try answer.get()
    }

    /// - Parameter left: the run, when it could not be ended.
    func end(_ end: RunEnd, _ keys: [String], left: JournalRun?) {
        state.withLock { state in
            for key in keys { state.keys[key] = nil }
            state.count -= 1
            if let left { state.unfinished[left.number] = left }
        }
        end.announce()
    }

    /// Whether a recorded run is no longer active: it has ended, or was left open.
    func isOver(_ run: JournalRun) -> Bool {
        run.outcome != nil || state.withLock { $0.unfinished[run.number] != nil }
    }

    /// Begins a replay; the caller must call `endReplay()`.
    func beginReplay() throws {
        let answer = state.withLock { state -> Result<Void, JournalError> in
            if state.isRecovering || state.count > 0 { return .failure(.busy) }
            if let objection = state.objection { return .failure(objection) }
            state.isReplaying = true
            return .success(())
        }
        try answer.get()
    }

    func endReplay() { state.withLock { $0.isReplaying = false } }

    /// Begins a recovery; the caller must call `endRecovery(isWhole:)`.
    ///
    /// - Returns: the runs that have not ended, in the order in which they were accepted.
    func beginRecovery() throws -> [JournalRun] {
        let answer = state.withLock { state -> Result<[Int64: JournalRun], JournalError> in
            if state.isReplaying || state.isRecovering { return .failure(.busy) }
            state.isRecovering = true
            return .success(state.unfinished)
        }
        return try answer.get().values.sorted { $0.number < $1.number }
    }

    func recovered(_ run: JournalRun) {
        state.withLock { $0.unfinished[run.number] = run.outcome == nil ? run : nil }
    }

    /// - Parameter isWhole: whether all unfinished runs were processed.
    func endRecovery(isWhole: Bool) {
        state.withLock { state in
            state.isRecovering = false
            if isWhole { state.needsRecovery = false }
        }
    }
}
