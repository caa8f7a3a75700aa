// Instances.swift - the objects of this module that are counted in debug builds, for its tests; see
// CompositeOperationsBasics.

internal import CompositeOperationsBasics

extension InstanceCount {
    static let operations = InstanceCount("operations")
    static let contexts = InstanceCount("contexts of operations")
    static let queues = InstanceCount("operation queues")
    static let tickets = InstanceCount("tickets of queues")
    static let dependencies = InstanceCount("dependencies")
    static let transitions = InstanceCount("observers of transitions")
}
