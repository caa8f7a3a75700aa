// Instances.swift - the classes whose instances debug builds count, for tests; see CompositeOperationsBasics.

internal import CompositeOperationsBasics

extension InstanceCount {
    static let journals = InstanceCount("journals")
    static let journaledRuns = InstanceCount("journaled runs")
    static let runEnds = InstanceCount("ends of runs")
    static let stores = InstanceCount("journal stores")
    static let writers = InstanceCount("journal writers")
}
