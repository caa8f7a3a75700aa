// ActionGroup.swift - several actions behind one gate.

import CompositeOperationsBasics

/// A limit on how many of a set of actions run at once; each action runs at most once at a time.
///
/// The policy of its actions is ``ActionPolicy/reject``. The group lives as long as one of its
/// actions.
public final class ActionGroup: Sendable {
    let gate: Gate
    private let instance = Instance(.groups)

    /// Creates a group without actions; an action joins it on creation.
    ///
    /// - Parameter limit: how many of the actions may run at once.
    /// - Precondition: the limit is 1 to 255, and at most 16 actions exist at a time: otherwise the
    ///   process stops.
    public init(limit: Int = 1) {
        demand(
            (1...GroupWord.mostLimit).contains(limit),
            "ActionGroup: the limit is \(limit), and must be 1 to \(GroupWord.mostLimit)")
        gate = Gate(bits: GroupWord(limit: limit).bits)
    }

    /// How many of the actions are running now.
    public var running: Int { GroupWord(bits: gate.bits).running }
}
