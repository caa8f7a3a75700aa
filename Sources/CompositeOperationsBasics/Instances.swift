// Instances.swift - counts the instances of a class, for the tests of this package: once everything has ended and been
// released, none may be left. Only debug builds count; other builds have neither the counts nor their cost.
//
//     extension InstanceCount { static let lanes = InstanceCount("lanes") }
//
//     final class Lane { private let instance = Instance(.lanes) }

#if DEBUG
    internal import Synchronization

    /// The number of instances of one kind. A kind is a constant that lives as long as the process.
    package final class InstanceCount: @unchecked Sendable {
        // Unchecked: `older` is written before the release that publishes it, and never after it.

        /// The kind's name, in the plural.
        package let name: String
        /// Relaxed: counting orders nothing between threads, so it hides no race.
        private let live = Atomic(0)
        private var older: Unmanaged<InstanceCount>?
        private static let newest = Atomic<Unmanaged<InstanceCount>?>(nil)

        /// A new kind, with no instances.
        package init(_ name: String) {
            self.name = name
            let this = Unmanaged.passRetained(self)
            var seen = Self.newest.load(ordering: .relaxed)
            while true {
                older = seen
                let exchange = Self.newest.compareExchange(
                    expected: seen, desired: this, successOrdering: .releasing, failureOrdering: .relaxed)
                if exchange.exchanged { return }
                seen = exchange.original
            }
        }

        /// For an object that cannot have an ``Instance``.
        package func add(_ amount: Int) { live.add(amount, ordering: .relaxed) }

        /// The current number of instances of each kind that has any, by the kind's name.
        package static var live: [String: Int] {
            var all: [String: Int] = [:]
            var next = newest.load(ordering: .acquiring)
            while let count = next?.takeUnretainedValue() {
                let number = count.live.load(ordering: .relaxed)
                if number != 0 { all[count.name] = number }
                next = count.older
            }
            return all
        }
    }

    /// Counts the object that stores it.
    package struct Instance: ~Copyable, Sendable {
        private let count: InstanceCount

        /// Adds one to a count until this value is destroyed.
        package init(_ count: @autoclosure () -> InstanceCount) {
            self.count = count()
            self.count.add(1)
        }

        deinit { count.add(-1) }
    }
#else
    /// Not counted in this build.
    package struct InstanceCount: Sendable {
        /// A kind.
        package init(_ name: String) {}

        /// Does nothing.
        @inlinable @inline(__always)
        package func add(_ amount: Int) {}
    }

    /// Empty: no size, and no call.
    package struct Instance: Sendable {
        /// Does not even evaluate its argument.
        @inlinable @inline(__always)
        package init(_ count: @autoclosure () -> InstanceCount) {}
    }
#endif
