// Results.swift - what the value of a composite is made of: the values of its children.

@_spi(Faces) internal import Runs

/// Names the children whose values make the value of a composite. The last line of a registration block.
///
/// ```swift
/// let sum = cascadeOperation { cascade in
///     let numbers = cascade.operation { [1, 2, 3] }
///     let sum = cascade.operation(using: numbers) { $0.reduce(0, +) }
///     return .value(of: sum)
/// }
/// ```
///
/// They may name any operation of the same tree that has finished when the composite's children have. With another one
/// the composite fails: ``RegistrationError/notAnEarlierStep``.
public struct Results<Success: Sendable>: Sendable {
    /// Gives the value to the composite, under the lock of its tree, when every child has finished; false: an operation is
    /// missing.
    let assemble: @Sendable (OperationHandle<Success>) -> Bool

    /// The value of one child.
    public static func value(of step: OperationHandle<Success>) -> Self {
        Self { $0.take(step.value(within: $0)) }
    }

    /// The value of one child.
    public static func value(of step: Child<Success>) -> Self {
        Self { $0.take(step.value(within: $0)) }
    }

    /// The values of some children.
    ///
    /// - Complexity: O(count), when the composite completes.
    public static func values<V>(of steps: [OperationHandle<V>]) -> Self where Success == [V] {
        Self { $0.take(values(of: steps, within: $0)) }
    }

    /// The values of some children.
    ///
    /// - Complexity: O(count), when the composite completes.
    public static func values<V>(of steps: [Child<V>]) -> Self where Success == [V] {
        Self { $0.take(values(of: steps, within: $0)) }
    }

    @inline(__always)
    private static func values<Step: ValueOfChild>(
        of steps: [Step], within composite: AnyOperation
    ) -> [Step.Success]? {
        var values: [Step.Success] = []
        values.reserveCapacity(steps.count)
        for step in steps {
            guard let value = step.value(within: composite) else { return nil }
            values.append(value)
        }
        return values
    }

    /// The values of some children, as a tuple.
    public static func values<each Step: ValueOfChild>(of step: repeat each Step) -> Self
    where Success == (repeat (each Step).Success) {
        // Swift 6.3 does not let a pack be captured by a closure that is Sendable; the tuple is.
        let steps = Steps((repeat each step))
        return Self { composite in
            composite.take(try? (repeat (each steps.all).required(within: composite)))
        }
    }
}

/// Some children of different types.
private struct Steps<each Step: ValueOfChild>: @unchecked Sendable {
    // Unchecked: a tuple of handles, which all are Sendable.
    let all: (repeat each Step)
    init(_ all: (repeat each Step)) { self.all = all }
}

extension Results where Success == Void {
    /// No value: the last line of a block that registers for a composite without one.
    public static let nothing = Results<Void> { $0.take(()) }
}

extension OperationHandle {
    /// - Returns: whether there is a value.
    @inline(__always)
    fileprivate final func take(_ value: Success?) -> Bool {
        guard let value else { return false }
        store(value)
        return true
    }
}

extension ValueOfChild {
    fileprivate func required(within composite: AnyOperation) throws(RegistrationError) -> Success {
        guard let value = value(within: composite) else { throw .notAnEarlierStep }
        return value
    }
}

/// A value that the children of a composite share, one at a time.
public final class Shared<Value>: @unchecked Sendable {
    // Unchecked: `value` is used under `lock` alone, and what goes in and out is sent.
    private let lock = WordLock()
    private var value: Value

    init(_ initial: sending Value) { value = initial }

    /// Works with the value while nobody else does. Not re-entrant; to wait inside for other users of it is a
    /// deadlock.
    public func withLock<R, E: Error>(
        _ body: (inout sending Value) throws(E) -> sending R
    ) throws(E) -> sending R {
        let key = UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
        lock.lock(key)
        defer { lock.unlock(key) }
        return try body(&value)
    }
}
