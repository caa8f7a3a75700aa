// RecoveryPlan.swift - what becomes of a run that an earlier process left: pure.

/// The plan for a run that has not ended, when its commands in doubt have been begun again.
package enum RecoveryPlan: Equatable, Sendable {
    /// Nothing but to say so.
    case end(JournalOutcome)
    /// The commands that have not been done are done.
    case forward
    /// All that was done is taken back.
    case compensate

    /// - Parameter run: has not ended.
    package init(_ run: JournalRun, _ unfinished: CommandJournal.Unfinished) {
        let phases = run.members.map(\.phase)
        if run.kind == .one, phases == [.failed] {
            self = .end(run.left ?? .failed)
        } else if run.members.contains(where: { $0.phase == .failed || $0.isGivenUp }) {
            self = .compensate  // that was decided when the first of these was written
        } else if phases.allSatisfy({ $0 == .done }) {
            self = .end(.finished)
        } else if run.kind == .one {
            self = .forward  // it was accepted; there is nothing to take back
        } else {
            self = unfinished == .resume ? .forward : .compensate
        }
    }

    /// The members in the order in which they go into the run that carries the plan out, which undoes them in reverse.
    ///
    /// Commands that were done come in that order; those without a proof that can be written down come last.
    package func members(of run: JournalRun) -> [Int] {
        run.members.indices.filter { index in
            switch run.members[index].phase {
            case .failed?, .undone?: false
            case nil: self == .forward
            default: true
            }
        }.sorted { first, second in
            func place(_ index: Int) -> (Int, Int64, Int) {
                let member = run.members[index]
                return (member.phase == nil ? 2 : member.proof == nil ? 1 : 0, member.order, index)
            }
            return place(first) < place(second)
        }
    }
}
