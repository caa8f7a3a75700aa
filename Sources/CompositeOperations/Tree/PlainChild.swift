// PlainChild.swift - what is known of a plain child by the types of its block: how it becomes an operation.

/// The metatype of a subclass says what is known of the block and the value of a child without an object.
@usableFromInline
class PlainChild {
    /// Destroys the value of one that has finished.
    class func destroyValue(of node: PlainNode) {}

    /// An operation that has finished, with the value of a child that has.
    class func finished(_ node: PlainNode, of composite: AnyOperation) -> AnyOperation {
        fatalError("a child without a kind")
    }

    /// An operation with the block of a child.
    ///
    /// - Parameter isRunning: its block is out, and is needed by whoever runs it: the operation has a copy.
    class func unfinished(_ node: PlainNode, isRunning: Bool, of composite: AnyOperation) -> AnyOperation {
        fatalError("a child without a kind")
    }

    /// The block of a child that has become an operation meanwhile has returned.
    class func returned(_ node: PlainNode, as operation: AnyOperation) {}

    /// Calls the block of a child whose value does not lie in its node.
    class func callForLarge(_ node: PlainNode) throws {}
}

/// A child whose block gives a value.
@usableFromInline
class PlainBlock<V: Sendable>: PlainChild {
    /// Of a node, for a value of this type.
    @inlinable
    @inline(__always)
    static var flags: PlainNode.Flags {
        guard ValueStorage.isInline(V.self) else {
            return PlainNode.Flags(rawValue: PlainNode.Flags.isLarge.rawValue | PlainNode.Flags.hasValue.rawValue)
        }
        return _isPOD(V.self) ? [] : .hasValue
    }

    fileprivate static func value(of node: PlainNode) -> UnsafeMutablePointer<V> {
        node.addressOfValue.assumingMemoryBound(to: V.self)
    }

    override class func destroyValue(of node: PlainNode) {
        let value = value(of: node)
        value.deinitialize(count: 1)
        if !ValueStorage.isInline(V.self) { value.deallocate() }
    }

    override class func finished(_ node: PlainNode, of composite: AnyOperation) -> AnyOperation {
        let operation = COOperation<V>(.none, AnyClosure(), plainChildOf: composite)
        operation.machine.finishAtOnce()
        operation.store(value(of: node).pointee)
        return operation
    }

    override class func unfinished(
        _ node: PlainNode, isRunning: Bool, of composite: AnyOperation
    ) -> AnyOperation {
        COOperation<V>(.value, isRunning ? node.copyOfBlock : node.takeBlock(), plainChildOf: composite)
    }

    override class func returned(_ node: PlainNode, as operation: AnyOperation) {
        let place = value(of: node)
        let value = place.move()
        if !ValueStorage.isInline(V.self) { place.deallocate() }
        unsafeDowncast(operation, to: COOperation<V>.self).finishByReturn(value, 1)
    }

    override class func callForLarge(_ node: PlainNode) throws {
        try storeLarge(in: node) { try node.word(0, BlockCalls.Value<V>.self).pointee.call() }
    }

    fileprivate static func storeLarge(in node: PlainNode, _ call: () throws -> V) throws {
        let value = try call()
        let place = UnsafeMutablePointer<V>.allocate(capacity: 1)
        place.initialize(to: value)
        node.word(PlainNode.Offset.value, UnsafeMutablePointer<V>.self).initialize(to: place)
    }
}

/// A child whose block is given the value of an earlier one.
@usableFromInline
final class PlainStep<Input: Sendable, V: Sendable>: PlainBlock<V> {
    // The earlier one became an operation before.
    override class func unfinished(
        _ node: PlainNode, isRunning: Bool, of composite: AnyOperation
    ) -> AnyOperation {
        let step = unsafeDowncast(node.step.object!, to: OperationHandle<Input>.self)
        return StepOperation<Input, V>(
            plainChildOf: composite, using: step, block: isRunning ? node.copyOfBlock : node.takeBlock())
    }

    override class func callForLarge(_ node: PlainNode) throws {
        try storeLarge(in: node) {
            let input = node.step.addressOfValue.assumingMemoryBound(to: Input.self)
            return try node.word(0, BlockCalls.Step<Input, V>.self).pointee.call(input.pointee)
        }
    }
}

/// A child whose block is given an index, and is that of others, too.
final class PlainIndexed: PlainBlock<Void> {
    override class func unfinished(
        _ node: PlainNode, isRunning: Bool, of composite: AnyOperation
    ) -> AnyOperation {
        let block = node.word(0, BlockCalls.Indexed.self).pointee.call
        let index = node.word(PlainNode.Offset.input, Int.self).pointee
        return COOperation<Void>(.value({ try block(index) }), plainChildOf: composite)
    }
}
