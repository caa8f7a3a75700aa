// RecoveryPlan.swift - the plan for a run that an earlier process left unfinished. Pure.

/// The plan for a run that has not ended, after its commands in doubt have been begun again.
package enum RecoveryPlan: Equatable, Sendable {
    /// Nothing is left to do but to record the outcome.
    case end(JournalOutcome)
    /// The remaining commands are done.
    case forward
    /// All commands that were done are undone.
    case compensate

    /// - Parameter run: a run that has not ended.
    package init(_ run: JournalRun, _ unfinished: CommandJournal.Unfinished) {
        let phases = run.members.map(\.phase)
        if run.kind == .one, phases == [.failed] {
            self = .end(run.left ?? .failed)
        } else if run.members.contains(where: { $0.phase == .failed || $0.isGivenUp }) {
            self = .compensate  // decided when the first of these records was written
        } else if phases.allSatisfy({ $0 == .done }) {
            self = .end(.finished)
        } else if run.kind == .one {
            self = .forward  // it was accepted; there is nothing to undo
        } else {
            self = unfinished == .resume ? .forward : .compensate
        }
    }

    /// The members in their order in the run that carries out the plan; that run undoes them in reverse.
    ///
    /// Commands that were done come in the order of completion; those without a recorded proof come after
    /// them.
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
