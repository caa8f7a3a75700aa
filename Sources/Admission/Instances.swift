// Instances.swift - the objects of this module that debug builds count, for its tests; see
// CompositeOperationsBasics.

internal import CompositeOperationsBasics

extension InstanceCount {
    static let gates = InstanceCount("gates of admission")
    static let tenants = InstanceCount("tenants")
    static let requests = InstanceCount("requests of tenants")
}
