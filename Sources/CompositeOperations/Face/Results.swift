// Results.swift - the value of a composite, assembled from the values of its children.

@_spi(Faces) internal import Runs

/// Names the children whose values make up the value of a composite. The last line of a registration block.
///
/// ```swift
/// let sum = cascadeOperation { cascade in
///     let numbers = cascade.operation { [1, 2, 3] }
///     let sum = cascade.operation(using: numbers) { $0.reduce(0, +) }
///     return .value(of: sum)
/// }
/// ```
///
/// Any operation of the same tree may be named, if it has finished by the time the composite's children have. With any
/// other operation the composite fails: ``RegistrationError/notAnEarlierStep``.
public struct Results<Success: Sendable>: Sendable {
    /// Stores the composite's value, under the lock of its tree, when every child has finished; false: a value is
    /// missing.
    let assemble: @Sendable (OperationHandle<Success>) -> Bool

    /// The value of one child.
    public static func value(of step: OperationHandle<Success>) -> Self {
        Self { composite in composite.store { step.give(to: $0, within: composite) } }
    }

    /// The value of one child.
    public static func value(of step: Child<Success>) -> Self {
        Self { composite in composite.store { step.give(to: $0, within: composite) } }
    }

    /// The values of some children.
    ///
    /// - Complexity: O(count), when the composite completes.
    public static func values<V>(of steps: [OperationHandle<V>]) -> Self where Success == [V] {
        Self { composite in
            composite.store { place in
                steps.withUnsafeBufferPointer { steps in
                    give(steps.count, to: place) { steps[$0].give(to: $1, within: composite) }
                }
            }
        }
    }

    /// The values of some children.
    ///
    /// - Complexity: O(count), when the composite completes.
    public static func values<V>(of steps: [Child<V>]) -> Self where Success == [V] {
        Self { composite in
            composite.store { place in
                steps.withUnsafeBufferPointer { steps in
                    steps.withMemoryRebound(to: ChildReference.self) { steps in
                        give(steps.count, to: place) { steps[$0].give(to: $1, within: composite) }
                    }
                }
            }
        }
    }

    /// Builds an array of `number` values.
    ///
    /// - Parameter value: initializes the value at an index; false: there is none.
    @inline(__always)
    private static func give<V>(
        _ number: Int, to place: UnsafeMutablePointer<[V]>,
        _ value: (Int, UnsafeMutablePointer<V>) -> Bool
    ) -> Bool {
        // All arrays without capacity share one buffer, and the code below would write to it from several threads.
        if number == 0 {
            place.initialize(to: [])
            return true
        }
        var isWhole = true
        let values = [V](unsafeUninitializedCapacity: number) { values, count in
            while isWhole, count < number {
                isWhole = value(count, values.baseAddress! + count)
                if isWhole { count += 1 }
            }
        }
        if isWhole { place.initialize(to: values) }
        return isWhole
    }

    /// The values of some children, as a tuple.
    public static func values<each Step: ValueOfChild>(of step: repeat each Step) -> Self
    where Success == (repeat (each Step).Success) {
        // In Swift 6.3 a Sendable closure cannot capture a pack; it can capture the tuple.
        let steps = Steps((repeat each step))
        return Self { composite in
            guard let values = try? (repeat (each steps.all).required(within: composite)) else {
                return false
            }
            composite.store(values)
            return true
        }
    }
}

/// Some children of different types.
private struct Steps<each Step: ValueOfChild>: @unchecked Sendable {
    // Unchecked: a tuple of handles, all of which are Sendable.
    let all: (repeat each Step)
    init(_ all: (repeat each Step)) { self.all = all }
}

extension Results where Success == Void {
    /// No value: the last line of a registration block of a composite without one.
    public static let nothing = Results<Void> { composite in
        composite.store(())
        return true
    }
}

extension ValueOfChild {
    fileprivate func required(within composite: AnyOperation) throws(RegistrationError) -> Success {
        let value = withUnsafeTemporaryAllocation(of: Success.self, capacity: 1) { place -> Success? in
            give(to: place.baseAddress!, within: composite) ? place.baseAddress!.move() : nil
        }
        guard let value else { throw .notAnEarlierStep }
        return value
    }
}

/// A value that the children of a composite share, and use one at a time.
public final class Shared<Value>: @unchecked Sendable {
    // Unchecked: `value` is used only under `lock`, and values passed in and out are sent.
    private let lock = WordLock()
    private var value: Value

    init(_ initial: sending Value) { value = initial }

    /// Calls `body` with exclusive access to the value. Not re-entrant; waiting in `body` for another user of the value
    /// deadlocks.
    public func withLock<R, E: Error>(
        _ body: (inout sending Value) throws(E) -> sending R
    ) throws(E) -> sending R {
        let key = UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
        lock.lock(key)
        defer { lock.unlock(key) }
        return try body(&value)
    }
}
