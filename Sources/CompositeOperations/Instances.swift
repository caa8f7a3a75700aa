// Instances.swift - how many operations and queues there are, for the tests of this package: when nobody holds
// anything and everything is over, none is left. Debug builds count; others have neither the counts nor their cost.

#if DEBUG
    internal import Synchronization

    /// How many there are. Relaxed: to count orders nothing between threads, and hides no race.
    package struct Instances: Equatable, Sendable {
        package var operations: Int
        package var queues: Int

        package static let none = Instances(operations: 0, queues: 0)

        private static let liveOperations = Atomic(0)
        private static let liveQueues = Atomic(0)

        /// How many there are now.
        package static var live: Instances {
            Instances(
                operations: liveOperations.load(ordering: .relaxed),
                queues: liveQueues.load(ordering: .relaxed))
        }

        static func addOperations(_ number: Int) { liveOperations.add(number, ordering: .relaxed) }
        static func addQueues(_ number: Int) { liveQueues.add(number, ordering: .relaxed) }
    }
#endif
