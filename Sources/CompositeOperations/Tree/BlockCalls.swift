// BlockCalls.swift - how the block of a plain child is called: by its address and its context, with the value written into
// the node (CBlockCalls.h).
//
// The compiler calls a closure whose result is of a generic type this way, but does not guarantee it. So it is tried
// once, with values and errors of several kinds. If that fails, every child has an object.

internal import CBlockCalls

/// Calls of closures that are known only by address.
@usableFromInline
enum BlockCalls {
    /// A closure as stored in a node: code and context.
    @usableFromInline
    struct Value<V> {
        @usableFromInline let call: @Sendable () throws -> V

        @inlinable
        @inline(__always)
        init(call: consuming @escaping @Sendable () throws -> V) { self.call = call }
    }

    /// Likewise, of a step.
    @usableFromInline
    struct Step<Input, V> {
        @usableFromInline let call: @Sendable (Input) throws -> V

        @inlinable
        @inline(__always)
        init(call: consuming @escaping @Sendable (Input) throws -> V) { self.call = call }
    }

    /// Likewise, of one child of a range.
    struct Indexed { let call: @Sendable (Int) throws -> Void }

    /// The words of a closure, without a reference.
    struct Words { let code, context: UnsafeRawPointer? }

    static func words<Block>(of block: Block) -> Words { unsafeBitCast(block, to: Words.self) }

    /// Whether plain children are possible.
    static let areRight: Bool = {
        guard PlainNode.isAsExpected, Trial.succeeds() else { return false }
        if BlocksOnStack.areKnown || COQueues.haveSurroundings { callApart() }
        return true
    }()

    /// From now on the surroundings of a block may matter.
    static func callApart() { block_calls_apart(callPlainChild) }

    /// The functions that call children.
    static var ofChild:
        @convention(c) (UnsafeMutableRawPointer, UnsafeMutableRawPointer) -> UnsafeMutableRawPointer?
    { block_calls_address() }

    /// Calls the block of a child.
    ///
    /// - Returns: nil: its value is stored; else the error, with a reference.
    @inline(__always)
    static func call(_ node: PlainNode) -> UnsafeMutableRawPointer? {
        block_calls_in_node(node.address.assumingMemoryBound(to: block_calls_node.self))
    }

    /// The error in a word. Takes over its reference.
    static func error(of word: UnsafeMutableRawPointer) -> any Error {
        var word = word
        return withUnsafeMutablePointer(to: &word) { word in
            word.withMemoryRebound(to: (any Error).self, capacity: 1) { $0.move() }
        }
    }

    /// Releases what a block holds.
    static var release: @convention(c) (UnsafeMutableRawPointer?) -> Void { block_calls_release() }

    // MARK: The trial

    private enum Trial {
        private final class Thing: Sendable, Equatable {
            let number: Int
            init(_ number: Int) { self.number = number }
            static func == (left: Thing, right: Thing) -> Bool { left.number == right.number }
        }
        private struct Pair: Equatable { let first, second: Int }
        private struct Failure: Error { let number: Int }

        static func succeeds() -> Bool {
            let thing = Thing(5)
            return gives(7) && gives("a string that does not fit into its words") && gives(thing)
                && gives([1, 2, 3]) && gives(2.5) && gives(nil as Thing?)
                && gives(Pair(first: 1, second: 2)) && fails() && takes() && counts()
        }

        /// Not optimised: otherwise the compiler could see through it.
        @inline(never)
        @_optimize(none)
        private static func gives<V: Equatable>(_ value: V) -> Bool {
            let constant = Constant(value)
            let block = Value<V> { constant.value }
            return withUnsafeTemporaryAllocation(of: V.self, capacity: 1) { room in
                let words = unsafeBitCast(block, to: Words.self)
                guard block_calls_value(words.code, words.context, room.baseAddress!) == nil else {
                    return false
                }
                defer { room.baseAddress!.deinitialize(count: 1) }
                return room[0] == value
            }
        }

        private struct Constant<V>: @unchecked Sendable {
            // Unchecked: one thread makes it and reads it.
            let value: V
            init(_ value: V) { self.value = value }
        }

        @inline(never)
        private static func fails() -> Bool {
            let thing = Thing(3)
            let block = Value<Int> { throw Failure(number: thing.number) }
            var value = 0
            let words = unsafeBitCast(block, to: Words.self)
            guard let error = block_calls_value(words.code, words.context, &value) else { return false }
            return (BlockCalls.error(of: error) as? Failure)?.number == 3
        }

        @inline(never)
        private static func takes() -> Bool {
            let block = Step<String, Int> { $0.utf8.count }
            let words = unsafeBitCast(block, to: Words.self)
            var value = 0
            var input = "nine and more characters"
            let error = withUnsafePointer(to: &input) {
                block_calls_step(words.code, words.context, &value, $0)
            }
            return error == nil && value == 24
        }

        @inline(never)
        private static func counts() -> Bool {
            let thing = Thing(3)
            let block = Indexed { if $0 != thing.number { throw Failure(number: $0) } }
            let words = unsafeBitCast(block, to: Words.self)
            guard block_calls_index(words.code, words.context, 3) == nil else { return false }
            guard let error = block_calls_index(words.code, words.context, 4) else { return false }
            return (BlockCalls.error(of: error) as? Failure)?.number == 4
        }
    }
}
