// Gate.swift - the word that decides whether a trigger is admitted, and the lock for everything that changes with it.
//
// Invariants:
//   I1  the word changes only under the lock, by a function of ActionSnapshot.swift, and is published in the same critical
//       section. So a reader, which takes no lock, never sees a mixture of two states.
//   I2  each change appends a snapshot for every member in that section, so the mailboxes contain the snapshots in the
//       order of the generations.
//   I3  no user code runs, and no user's object is released, under the lock.
//
// Orderings:
//   P1  publish (release) -> read (acquire): a thread that reads a state sees everything that led to it.

@_spi(Faces) internal import Runs
import Synchronization

/// Admits or refuses triggers: of one action, or of all actions of a group.
final class Gate: Sendable {
    private struct WeakMember: Sendable { weak let core: ActionCore? }

    private struct State {
        var bits: UInt64
        var members: [WeakMember] = []
    }

    private let published: Atomic<UInt64>
    private let state: Guarded<State>

    init(bits: UInt64) {
        published = Atomic(bits)
        state = Guarded(State(bits: bits))
    }

    /// The current word. Takes no lock.
    var bits: UInt64 { published.load(ordering: .acquiring) }

    /// - Returns: the index of the action, possibly reused from a deallocated member; nil if there are already `most`
    ///   members.
    func add(_ core: ActionCore, most: Int) -> Int? {
        let (index, members) = state.withLock { state -> (Int?, [ActionCore?]) in
            let members = state.members.map(\.core)
            let index = members.firstIndex { $0 == nil } ?? members.count
            guard index < most else { return (nil, members) }
            if index == members.count {
                state.members.append(WeakMember(core: core))
            } else {
                // No execution of the former member is running, as that would retain it; the new member publishes its own
                // precondition.
                state.members[index] = WeakMember(core: core)
            }
            return (index, members)
        }
        withExtendedLifetime(members) {}  // each may be the last reference: released under no lock
        return index
    }

    /// Calls `body` under the lock.
    func withLock<Answer>(_ body: (_ bits: UInt64) -> Answer) -> Answer {
        state.withLock { body($0.bits) }
    }

    /// In one critical section, changes the word, appends the snapshot for each member if the word has changed, and calls
    /// `then`. Afterwards delivers the notices of the other members of a group; the caller delivers its own.
    ///
    /// - Returns: what `then` returns.
    func transition<Change, Answer>(
        of core: ActionCore, _ change: (inout UInt64) -> Change, then: (Change) -> Answer
    ) -> Answer {
        let (answer, others) = state.withLock { state in
            let (outcome, hasChanged) = publish(&state.bits, of: core, change)
            var others: [ActionCore] = []
            if hasChanged, core.index != nil {
                others = state.members.compactMap(\.core).filter { $0 !== core }
                for other in others { other.append(bits: state.bits) }
            }
            return (then(outcome), others)
        }
        for other in others { other.deliver() }
        return answer
    }

    /// As ``transition(of:_:then:)``, for an action in no group.
    @inline(__always)
    func transition<Change, Answer>(
        ofOnly core: ActionCore, _ change: (inout UInt64) -> Change, then: (Change) -> Answer
    ) -> Answer {
        state.withLock { state in then(publish(&state.bits, of: core, change).outcome) }
    }

    /// Under the lock.
    @inline(__always)
    private func publish<Change>(
        _ bits: inout UInt64, of core: ActionCore, _ change: (inout UInt64) -> Change
    ) -> (outcome: Change, hasChanged: Bool) {
        let before = bits
        let outcome = change(&bits)
        if bits == before { return (outcome, false) }
        published.store(bits, ordering: .releasing)
        core.append(bits: bits)
        return (outcome, true)
    }
}
