// LiveRuns.swift - what goes on in a journal now: which keys are being worked on, whether it is being replayed or recovered.
//
// Invariants:
//   I1  a key is reserved by one run at a time, from before that looks it up until its end is durable. So two runs never write
//       the same key. Who only wants to know what is recorded needs no key.
//   I2  runs and a replay exclude each other, and two recoveries.

internal import CompositeOperationsBasics
@_spi(Faces) internal import Runs

/// The end of a run, for those who wait with the same key.
final class RunEnd: Sendable {
    private struct State {
        var isOver = false
        var waiters = WaitList()
    }

    private let state = Guarded(State())
    private let instance = Instance(.runEnds)

    /// Returns then, or when the task is cancelled.
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

/// The runs that go on in a journal now.
final class LiveRuns: Sendable {
    private struct State {
        var count = 0
        var keys: [String: RunEnd] = [:]
        var isReplaying = false
        var isRecovering = false
        /// Of earlier processes; and of this one, those that could not be ended.
        var unfinished: [Int64: JournalRun]
        var needsRecovery: Bool

        /// Why nothing can begin, if so.
        var objection: JournalError? { isReplaying ? .busy : needsRecovery ? .needsRecovery : nil }
    }

    private let state: Guarded<State>

    init(unfinished: [Int64: JournalRun]) {
        state = Guarded(State(unfinished: unfinished, needsRecovery: !unfinished.isEmpty))
    }

    /// The answer to who would begin a run.
    enum Beginning {
        /// Its keys are reserved; `end(_:_:left:)` is owed.
        case begun(RunEnd)
        /// Another run has one of its keys, until that run ends.
        case taken(RunEnd)
    }

    /// Begins a run, if nobody else works on its keys.
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

    /// Whether nobody works on a run any more that is recorded: it has ended, or was left open.
    func isOver(_ run: JournalRun) -> Bool {
        run.outcome != nil || state.withLock { $0.unfinished[run.number] != nil }
    }

    /// `endReplay()` is owed.
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

    /// `endRecovery(isWhole:)` is owed.
    ///
    /// - Returns: what has not ended, in the order in which it was accepted.
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

    /// - Parameter isWhole: whether all were looked at.
    func endRecovery(isWhole: Bool) {
        state.withLock { state in
            state.isRecovering = false
            if isWhole { state.needsRecovery = false }
        }
    }
}
