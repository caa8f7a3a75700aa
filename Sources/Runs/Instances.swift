// Instances.swift - the objects of this module that debug builds count, for its tests; see
// CompositeOperationsBasics.

internal import CompositeOperationsBasics

extension InstanceCount {
    static let subscriptions = InstanceCount("subscriptions")
    static let plainChildren = InstanceCount("runs of registration blocks")
}
