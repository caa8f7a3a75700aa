// Instances.swift - what is counted of this module in debug builds, for its tests; see CompositeOperationsBasics.

internal import CompositeOperationsBasics

extension InstanceCount {
    static let gates = InstanceCount("gates of admission")
    static let tenants = InstanceCount("tenants")
    static let requests = InstanceCount("requests of tenants")
}
