// Instances.swift - what is counted of this module in debug builds, for its tests; see CompositeOperationsBasics.

internal import CompositeOperationsBasics

extension InstanceCount {
    static let subscriptions = InstanceCount("subscriptions")
    static let plainChildren = InstanceCount("runs of registration blocks")
}
