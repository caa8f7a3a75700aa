import CompositeOperationsBasics

/// Plain memory that threads share on purpose, protected only by the ordering that the tested code provides.
///
/// Accessed through a pointer's `pointee`, which ThreadSanitizer sees in a debug build, too.
public final class Slots: @unchecked Sendable {
    // Unchecked: slots are meant to be unsafe without the tested code's ordering.
    private let storage: UnsafeMutablePointer<Int>

    /// The number of slots.
    public let count: Int

    /// Creates slots that hold 0.
    public init(count: Int) {
        self.count = count
        storage = .allocate(capacity: count)
        storage.initialize(repeating: 0, count: count)
    }

    deinit { storage.deallocate() }

    /// One slot; no synchronisation.
    public subscript(index: Int) -> Int {
        get {
            demand((0..<count).contains(index), "Slots: there is no slot \(index)")
            return (storage + index).pointee
        }
        set {
            demand((0..<count).contains(index), "Slots: there is no slot \(index)")
            (storage + index).pointee = newValue
        }
    }

    /// The sum of all slots; no synchronisation.
    public var sum: Int { (0..<count).reduce(0) { $0 + self[$1] } }
}
