// Instances.swift - the objects of this module that debug builds count, for its tests; see
// CompositeOperationsBasics.

import CompositeOperationsBasics

extension InstanceCount {
    static let actions = InstanceCount("actions")
    static let cores = InstanceCount("action cores")
    static let executions = InstanceCount("executions")
    static let bindings = InstanceCount("bindings")
    static let groups = InstanceCount("action groups")
    static let mailboxes = InstanceCount("mailboxes")
    static let observers = InstanceCount("observers")
    static let values = InstanceCount("live values")
    static let validatedValues = InstanceCount("validated values")
}
