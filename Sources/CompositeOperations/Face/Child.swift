// Child.swift - a handle to a child that may have no object.

public import Runs

/// A child of a composite, registered with a block that returns its value, and without a target or options.
///
/// Most children are never looked at again. So a child whose value takes at most two words and has no references, such
/// as `Void` or a number, has no object of its own until a member is used that needs an operation: ``operation``, and
/// every member here except ``isFinished`` and, once the child has finished, ``value``, ``outcome`` and
/// ``wait(timeout:)``. If the child has not finished by then, all children of the composite become operations. A handle
/// keeps 64 bytes alive for each child of the composite.
///
/// ```swift
/// let sum = try await cascadeOperation { cascade in
///     let numbers = cascade.operation { [1, 2, 3] }
///     return .value(of: cascade.operation(using: numbers) { $0.reduce(0, +) })
/// }.value
/// ```
///
/// Other members of ``COOperation`` are available through ``operation``. Where a ``COOperation`` is expected, as in
/// `let child: COOperation<Int> = scope.operation { 1 }`, the child is registered as an operation.
@dynamicMemberLookup
public struct Child<Success: Sendable>: @unchecked Sendable {
    // Unchecked: both fields may be used on any thread.

    /// The `PlainChildren` of the composite; if there is no node, the operation.
    @usableFromInline let holder: AnyObject
    @usableFromInline let node: PlainNode?

    @usableFromInline
    init(_ operation: COOperation<Success>) {
        holder = operation
        node = nil
    }

    @inlinable
    @inline(__always)
    init(_ place: PlainPlace) {
        holder = place.holder.takeUnretainedValue()
        node = place.node
    }

    /// The child as an operation.
    ///
    /// - Complexity: O(children of the composite) for the first such call on a child that has not finished; else O(1).
    public var operation: COOperation<Success> {
        guard let node else { return unsafeDowncast(holder, to: COOperation<Success>.self) }
        let children = unsafeDowncast(holder, to: PlainChildren.self)
        return unsafeDowncast(children.operation(of: node), to: COOperation<Success>.self)
    }

    /// Whether it has become an operation.
    package var hasObject: Bool {
        guard let node else { return true }
        return unsafeDowncast(holder, to: PlainChildren.self).tree.look { node.object != nil }
    }

    /// A member of the operation.
    public subscript<Member>(dynamicMember path: KeyPath<COOperation<Success>, Member>) -> Member {
        operation[keyPath: path]
    }

    /// The value, if the child has finished as a plain one; nil: it has not finished, or is an operation. Under no
    /// lock.
    fileprivate var plainValue: Success? {
        guard let node, node.isFinished else { return nil }
        return node.value(Success.self)
    }

    /// Whether it finished.
    public var isFinished: Bool {
        guard let node else { return operation.isFinished }
        if node.isFinished { return true }
        let children = unsafeDowncast(holder, to: PlainChildren.self)
        return children.tree.look { node.object?.isFinishedForGood ?? children.wereTaken }
    }

    /// Its value; waits for the end. Throws the error that it failed with, or a ``CancelReason``.
    public var value: Success {
        get async throws { if let plainValue { plainValue } else { try await operation.value } }
    }

    /// How it ended; waits for the end.
    public var outcome: Outcome<Success> {
        get async { if let plainValue { .finished(plainValue) } else { await operation.outcome } }
    }

    /// See ``OperationHandle/wait(timeout:)``.
    @available(*, noasync, message: "Blocks the thread; use `outcome` or `value`.")
    @discardableResult
    public func wait(timeout: Duration? = nil) -> Outcome<Success>? {
        if let plainValue { .finished(plainValue) } else { operation.wait(timeout: timeout) }
    }

    /// See ``OperationHandle/onOutcome(on:_:)``.
    @discardableResult
    public func onOutcome(
        on target: (any ExecutionTarget)? = nil, _ handler: @escaping @Sendable (Outcome<Success>) -> Void
    ) -> Self {
        operation.onOutcome(on: target, handler)
        return self
    }

    /// See ``AnyOperation/cancel(_:)``.
    @discardableResult
    public func cancel(_ reason: CancelReason? = nil) -> Bool { operation.cancel(reason) }

    /// See ``COOperation/finish(_:)``.
    @discardableResult
    public func finish(_ value: Success) -> Bool { operation.finish(value) }

    /// See ``COOperation/fail(_:)``.
    @discardableResult
    public func fail(_ error: any Error) -> Bool { operation.fail(error) }

    /// See ``AnyOperation/suspend()``.
    @discardableResult
    public func suspend() -> Bool { operation.suspend() }

    /// See ``AnyOperation/resume(_:)``.
    @discardableResult
    public func resume(_ mode: ResumeMode = .continue) -> Bool { operation.resume(mode) }

    /// See ``AnyOperation/rerun(after:)``.
    @discardableResult
    public func rerun(after pause: Duration = .zero) -> Bool { operation.rerun(after: pause) }

    /// See ``AnyOperation/addDependency(_:)``.
    @discardableResult
    public func addDependency(_ other: AnyOperation) -> Bool { operation.addDependency(other) }

    /// See ``OperationHandle/copy()``.
    public func copy() -> COOperation<Success> { operation.copy() }
}

extension Child where Success == Void {
    /// See ``COOperation/finish()``.
    @discardableResult
    public func finish() -> Bool { operation.finish() }
}

extension Child: CustomStringConvertible {
    /// The description of the operation.
    public var description: String { operation.description }
}

/// A source of a value for its composite: an operation, or a ``Child``.
public protocol ValueOfChild<Success>: Sendable {
    /// The type of the value.
    associatedtype Success: Sendable
    /// Copies its value to uninitialized memory, for a composite of the same tree. Under the lock.
    ///
    /// - Returns: false: there is no value.
    @_spi(Faces) func give(to place: UnsafeMutablePointer<Success>, within composite: AnyOperation) -> Bool
}

extension ValueOfChild {
    /// Returns false: there is no value.
    @_spi(Faces) public func give(to place: UnsafeMutablePointer<Success>, within composite: AnyOperation)
        -> Bool
    { false }
}

extension OperationHandle: ValueOfChild {
    /// Copies its value to uninitialized memory, for a composite of the same tree. Under the lock.
    ///
    /// - Returns: false: there is no value.
    @_spi(Faces) public final func give(
        to place: UnsafeMutablePointer<Success>, within composite: AnyOperation
    ) -> Bool {
        guard isOfTheSameTree(as: composite), isFinishedForGood else { return false }
        place.initialize(to: storedValue)
        return true
    }
}

extension Child: ValueOfChild {
    /// Copies its value to uninitialized memory, for a composite of the same tree. Under the lock.
    ///
    /// - Returns: false: there is no value.
    @_spi(Faces) public func give(
        to place: UnsafeMutablePointer<Success>, within composite: AnyOperation
    ) -> Bool {
        ChildReference(holder: .passUnretained(holder), node: node).give(to: place, within: composite)
    }
}

/// A ``Child`` as laid out in memory, without the type of its value and without reference counting: for code that holds
/// the child.
struct ChildReference {
    let holder: Unmanaged<AnyObject>
    let node: PlainNode?

    /// See ``Child/give(to:within:)``.
    @inline(__always)
    func give<V: Sendable>(to place: UnsafeMutablePointer<V>, within composite: AnyOperation) -> Bool {
        holder._withUnsafeGuaranteedRef { holder in
            guard let node else {
                return unsafeDowncast(holder, to: COOperation<V>.self).give(to: place, within: composite)
            }
            let children = unsafeDowncast(holder, to: PlainChildren.self)
            guard composite.isOf(children.domain) else { return false }
            // Of the children that were taken, only those that had finished have no object.
            if !node.isFinished, node.object != nil || !children.wereTaken {
                guard let operation = node.object else { return false }
                return unsafeDowncast(operation, to: COOperation<V>.self).give(to: place, within: composite)
            }
            node.copyValue(to: place)
            return true
        }
    }
}
