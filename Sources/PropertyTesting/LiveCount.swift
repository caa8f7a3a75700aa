import Synchronization

/// The number of live instances of something.
///
/// Count a class with a ``Counted`` in each instance:
///
/// ```swift
/// final class Operation: Sendable {
///     static let live = LiveCount("Operation")
///     private let counted = Counted(live)
/// }
/// ```
///
/// A ``Census`` knows every count that exists. Counting orders nothing between threads, so it hides no race.
public final class LiveCount: Sendable {
    private static let all = Locked<[Reference]>([])

    /// The name of the counted things.
    public let name: String
    private let live = Atomic(0)

    /// Creates a count of zero.
    public init(_ name: String) {
        self.name = name
        Self.all.withLock { all in
            all.removeAll { $0.count == nil }
            all.append(Reference(self))
        }
    }

    /// The current number of instances.
    public var value: Int { live.load(ordering: .relaxed) }

    /// All counts that are still referenced.
    static var existing: [LiveCount] {
        let references = all.withLock { $0 }
        return references.compactMap(\.count)
    }

    fileprivate func add(_ amount: Int) { live.add(amount, ordering: .relaxed) }

    private struct Reference: Sendable {
        weak let count: LiveCount?
        init(_ count: LiveCount) { self.count = count }
    }
}

/// Counts as one instance until it is released together with its holder: an object, or a closure.
public final class Counted: Sendable {
    private let count: LiveCount

    /// Adds one to a count.
    public init(_ count: LiveCount) {
        self.count = count
        count.add(1)
    }

    deinit { count.add(-1) }
}
