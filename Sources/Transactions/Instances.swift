// Instances.swift - the instances of this module that debug builds count, for its tests; see
// CompositeOperationsBasics.

import CompositeOperationsBasics

extension InstanceCount {
    static let contexts = InstanceCount("contexts")
    static let trees = InstanceCount("trees")
    static let runs = InstanceCount("transactions")
    static let states = InstanceCount("logged properties")
    static let savedValues = InstanceCount("saved values")
    static let records = InstanceCount("commit records")
    static let undoSteps = InstanceCount("undo steps of transactions")
    static let observers = InstanceCount("observers of trees")
    static let views = InstanceCount("views")
    static let waiters = InstanceCount("waiters")
}
