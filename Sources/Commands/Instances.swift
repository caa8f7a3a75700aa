// Instances.swift - the objects of this module that debug builds count, for its tests; see
// CompositeOperationsBasics.

internal import CompositeOperationsBasics

extension InstanceCount {
    static let transactionCommands = InstanceCount("transaction commands")
    static let runs = InstanceCount("runs of commands")
    static let bodies = InstanceCount("bodies of commands")
    static let lanes = InstanceCount("lanes")
    static let invokers = InstanceCount("invokers")
    static let groups = InstanceCount("transaction groups")
    static let deliveries = InstanceCount("deliveries")
    static let undoStacks = InstanceCount("undo stacks")
    static let undoActions = InstanceCount("undo actions")
}
