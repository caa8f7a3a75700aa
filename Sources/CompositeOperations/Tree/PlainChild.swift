// PlainChild.swift - the part of a plain child that depends on the types of its block: how it becomes an operation.
//
// Its value has no references, and takes two words at most. A value with references could hold a handle to a sibling,
// and so the node that stores it: a cycle that is never released. And one handle would keep the values of all siblings
// alive.

package import Runs

/// The metatype of a subclass describes the block and the value of a child without an object.
@usableFromInline
class PlainChild {
    /// A finished operation, with the value of a finished child.
    class func finished(_ node: PlainNode, in tree: Domain) -> AnyOperation {
        fatalError("a child without a kind")
    }

    /// An operation with the block of a child.
    ///
    /// - Parameter isRunning: its block is running, and the thread that runs it still needs it: the operation gets a
    ///   copy.
    class func unfinished(_ node: PlainNode, isRunning: Bool, of composite: AnyOperation) -> AnyOperation {
        fatalError("a child without a kind")
    }

    /// The block of a child that has become an operation meanwhile has returned.
    class func returned(_ node: PlainNode, as operation: AnyOperation) {}
}

/// A child whose block returns a value.
@usableFromInline
class PlainBlock<V: Sendable>: PlainChild {
    /// Whether a child with such a value can be a plain one.
    @inlinable
    @inline(__always)
    static var isPossible: Bool { _isPOD(V.self) && ValueStorage.isInline(V.self) }

    override class func finished(_ node: PlainNode, in tree: Domain) -> AnyOperation {
        let operation = COOperation<V>(endedIn: tree)
        operation.machine.finishAtOnce()
        operation.store(node.value(V.self))
        return operation
    }

    override class func unfinished(
        _ node: PlainNode, isRunning: Bool, of composite: AnyOperation
    ) -> AnyOperation {
        COOperation<V>(.value, isRunning ? node.copyOfBlock : node.takeBlock(), plainChildOf: composite)
    }

    override class func returned(_ node: PlainNode, as operation: AnyOperation) {
        unsafeDowncast(operation, to: COOperation<V>.self).finishByReturn(node.value(V.self), 1)
    }
}

/// A child whose block takes the value of an earlier one.
@usableFromInline
final class PlainStep<Input: Sendable, V: Sendable>: PlainBlock<V> {
    // The earlier child has already become an operation.
    override class func unfinished(
        _ node: PlainNode, isRunning: Bool, of composite: AnyOperation
    ) -> AnyOperation {
        let step = unsafeDowncast(node.step.object!, to: OperationHandle<Input>.self)
        return StepOperation<Input, V>(
            plainChildOf: composite, using: step, block: isRunning ? node.copyOfBlock : node.takeBlock())
    }
}

/// A child whose block takes an index, and is shared with other children.
final class PlainIndexed: PlainBlock<Void> {
    override class func unfinished(
        _ node: PlainNode, isRunning: Bool, of composite: AnyOperation
    ) -> AnyOperation {
        let block = node.word(0, BlockCalls.Indexed.self).pointee.call
        let index = node.word(PlainNode.Offset.input, Int.self).pointee
        return COOperation<Void>(.value({ try block(index) }), plainChildOf: composite)
    }
}
