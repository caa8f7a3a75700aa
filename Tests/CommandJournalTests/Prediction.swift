// The duties of a recovery, specified independently of the library: from the records alone, as simply as possible.

import CommandJournal
import Foundation

/// The meaning of a sequence of records, and the results that must follow.
struct Prediction {
    /// A member: its work, and its last phase in the records.
    struct Member {
        let work: Work
        var phase: JournalRecord.Phase?
        /// Whether its effect is in place.
        var isThere = false
        var isInDoubt: Bool { phase == .begun || phase == .undoing }
        /// Whether it may be begun again.
        var mayRepeat: Bool { work.plan.hasKey || work.plan.kind == .noEffect }
        var hasEffect: Bool { work.plan.kind != .noEffect }
    }

    struct Run {
        let number: Int64
        var isAccepted = false
        var isSingle = false
        var isEnded = false
        /// The outcome that a recovery gives it.
        var outcome: JournalOutcome?
        var members: [Member] = []
        /// The members that were done, in that order.
        var order: [Int] = []
        /// The members that were begun, in that order.
        var begun: [Int] = []
    }

    private(set) var runs: [Run] = []

    /// - Parameter happened: whether the work in doubt took effect.
    init(_ records: [JournalRecord], happened: Bool) {
        for record in records {
            if runs.last.map({ $0.number < record.run }) ?? true { runs.append(Run(number: record.run)) }
            let index = runs.firstIndex { $0.number == record.run }!
            switch (record.phase!, record.member) {
            case (.accepted, nil):
                runs[index].isAccepted = true
                runs[index].isSingle = record.type == "one"
            case (.accepted, _?):
                let work = try! JSONDecoder().decode(Work.self, from: record.payload!)
                runs[index].members.append(Member(work: work))
            case (.ended, _): runs[index].isEnded = true
            case (let phase, let member):
                runs[index].members[member!].phase = phase
                if phase == .begun { runs[index].begun.append(member!) }
                if phase == .done {
                    runs[index].members[member!].isThere = runs[index].members[member!].hasEffect
                    runs[index].order.append(member!)
                }
                if phase == .undone {
                    let stays = runs[index].members[member!].work.plan.kind == .irreversible
                    runs[index].members[member!].isThere = stays
                }
            }
        }
        guard happened else { return }
        for run in runs.indices {
            for member in runs[run].members.indices {
                let plan = runs[run].members[member].work.plan
                switch runs[run].members[member].phase {
                case .begun: runs[run].members[member].isThere = !plan.fails && plan.kind != .noEffect
                case .undoing:
                    runs[run].members[member].isThere = plan.failsToUndo || plan.kind == .irreversible
                default: break
                }
            }
        }
    }

    /// Returns the state of the receiver when the process ends here.
    func receiver(happened: Bool) -> Receiver.State {
        var state = Receiver.State()
        for run in runs {
            let begun = run.begun.filter { !run.order.contains($0) }
            for index in run.order + begun {
                let member = run.members[index]
                let (id, key) = (member.work.id, member.work.idempotencyKey)
                let wasDone =
                    member.hasEffect
                    && (run.order.contains(index)
                        || member.phase == .begun && happened && !member.work.plan.fails)
                guard wasDone else { continue }
                state.effects[id] = 1
                if let key { state.doneKeys[key] = id.run * 1000 + id.number }
                let succeeds = !member.work.plan.failsToUndo
                if member.phase == .undone || member.phase == .undoing && happened && succeeds {
                    state.undone[id] = 1
                    if let key { state.undoneKeys.insert(key) }
                }
                if member.phase == .undoFailed
                    || member.work.plan.kind == .irreversible && state.undone[id] != nil
                {
                    state.sticky.insert(id)
                }
                if member.isThere { state.live.append(id) }
            }
        }
        return state
    }

    /// The members left in doubt, as (run, member).
    var inDoubt: [KeyPlace] {
        runs.filter { !$0.isEnded && $0.isAccepted }.flatMap { run in
            run.members.indices.filter { run.members[$0].isInDoubt && !run.members[$0].mayRepeat }
                .map { KeyPlace(run: run.number, member: $0) }
        }
    }

    /// The runs after a recovery.
    func recovered(resumes: Bool) -> [Run] {
        runs.filter(\.isAccepted).map { run in
            var run = run
            if !run.isEnded, !run.members.contains(where: { $0.isInDoubt && !$0.mayRepeat }) {
                run.outcome = Self.end(&run, resumes: resumes)
            }
            return run
        }
    }

    /// Returns the effects that are in place after a recovery.
    func effects(resumes: Bool) -> Set<WorkID> {
        Set(recovered(resumes: resumes).flatMap { $0.members.filter(\.isThere).map(\.work.id) })
    }

    private static func end(_ run: inout Run, resumes: Bool) -> JournalOutcome {
        let isBad = run.members.contains {
            [.failed, .undoing, .undone, .undoFailed].contains($0.phase)
        }
        if run.isSingle {
            let fails = isBad || run.members[0].work.plan.fails && run.members[0].phase != .done
            run.members[0].isThere = !fails && run.members[0].hasEffect
            return fails ? .failed : .finished
        }
        if run.members.allSatisfy({ $0.phase == .done }) { return .finished }
        // Members that were begun count as done, except those that fail.
        func fails(_ index: Int) -> Bool {
            run.members[index].work.plan.fails && run.members[index].phase != .done
        }
        var done = run.begun.filter { !fails($0) }
        if !isBad, resumes, !run.begun.contains(where: fails) {
            // Then the remaining members, up to the first that fails.
            let others = run.members.indices.filter { !run.begun.contains($0) }
            done += others.prefix { !fails($0) }
            if done.count == run.members.count {
                for index in run.members.indices { run.members[index].isThere = run.members[index].hasEffect }
                return .finished
            }
        }
        var outcome = JournalOutcome.rolledBack
        for index in run.members.indices {
            let plan = run.members[index].work.plan
            let wasDone = done.contains(index) && plan.kind != .noEffect
            run.members[index].isThere = wasDone && (plan.failsToUndo || plan.kind == .irreversible)
            if wasDone, plan.failsToUndo { outcome = .incomplete }
            if wasDone, plan.kind == .irreversible, outcome == .rolledBack {
                outcome = .rolledBackExceptIrreversible
            }
        }
        return outcome
    }
}
