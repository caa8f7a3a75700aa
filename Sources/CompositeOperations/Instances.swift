// Instances.swift - what is counted of this module in debug builds, for its tests; see Basics.

internal import Basics

extension InstanceCount {
    static let operations = InstanceCount("operations")
    static let queues = InstanceCount("operation queues")
}
