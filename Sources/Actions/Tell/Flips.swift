// Flips.swift - detection of observers that write what their own preconditions read, and never
// settle.

internal import Runs
import Synchronization

/// Counts the changes of an action's precondition.
final class Flips: Sendable {
    /// So many changes in one drain, without an execution, indicate a loop.
    static let many = 1_000

    private let id: ActionID
    private let changes = Atomic(0)
    /// The count when the last execution began.
    private let before = Atomic(0)
    private let isReported = Atomic(false)

    init(of id: ActionID) { self.id = id }

    var count: Int { changes.load(ordering: .relaxed) }
    func add() { changes.add(1, ordering: .relaxed) }
    func reset() { before.store(count, ordering: .relaxed) }
    /// Whether there were many since the count was `start`, and since the last execution began.
    func areMany(since start: Int) -> Bool {
        count - max(start, before.load(ordering: .relaxed)) >= Self.many
    }

    /// Reports to ``Diagnostics/onReport(_:)``, once for each action.
    func report() {
        guard !isReported.exchange(true, ordering: .relaxed) else { return }
        Diagnostics.report(
            Diagnostic(
                "the precondition of action \(id) changed \(Self.many) times in one go, and nothing ran; does an observer write what it reads?"
            ))
    }
}
