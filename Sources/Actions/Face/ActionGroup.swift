// ActionGroup.swift - several actions behind one gate.

import CompositeOperationsBasics

/// Actions of which only so many run at once; each of them runs once at a time.
///
/// The policy of its actions is ``ActionPolicy/reject``. The group lives as long as one of them.
public final class ActionGroup: Sendable {
    let gate: Gate
    private let instance = Instance(.groups)

    /// Creates a group without actions; an action names it when it is created.
    ///
    /// - Parameter limit: how many of its actions may run at once.
    /// - Precondition: 1 to 255, and at most 16 actions at a time: anything else stops the process.
    public init(limit: Int = 1) {
        demand(
            (1...GroupWord.mostLimit).contains(limit),
            "ActionGroup: the limit is \(limit), and must be 1 to \(GroupWord.mostLimit)")
        gate = Gate(bits: GroupWord(limit: limit).bits)
    }

    /// How many of its actions run now.
    public var running: Int { GroupWord(bits: gate.bits).running }
}
