// Instances.swift - how many instances of a class there are, for the tests of this package: when nobody holds anything and
// everything is over, none is left. Debug builds count; in others neither the counts nor their cost are there.
//
//     extension InstanceCount { static let lanes = InstanceCount("lanes") }
//
//     final class Lane { private let instance = Instance(.lanes) }

#if DEBUG
    internal import Synchronization

    /// How many there are of one kind. A kind is a constant: it stays as long as the process.
    package final class InstanceCount: @unchecked Sendable {
        // Unchecked: `older` is written before the release that makes it visible, and never after it.

        /// In the plural.
        package let name: String
        /// Relaxed: to count orders nothing between threads, and hides no race.
        private let live = Atomic(0)
        private var older: Unmanaged<InstanceCount>?
        private static let newest = Atomic<Unmanaged<InstanceCount>?>(nil)

        /// A new kind, of which there are none.
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

        /// How many there are now of each kind of which there are any, by their names.
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

    /// Counts the object that has it.
    package struct Instance: ~Copyable, Sendable {
        private let count: InstanceCount

        /// Adds one to a count, until it goes.
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

        /// Nothing.
        @inlinable @inline(__always)
        package func add(_ amount: Int) {}
    }

    /// Nothing: without a size, and without a call.
    package struct Instance: Sendable {
        /// Does not even evaluate its argument.
        @inlinable @inline(__always)
        package init(_ count: @autoclosure () -> InstanceCount) {}
    }
#endif
