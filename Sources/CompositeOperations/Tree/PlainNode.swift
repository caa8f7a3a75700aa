// PlainNode.swift - the node of a child without an object, as the registering code fills it.

internal import Runs

/// A child without an object: the address of its node, which its `PlainChildren` keep.
@usableFromInline
struct PlainNode: @unchecked Sendable {
    // Unchecked: children.c and Composition+Plain.swift specify for each word which thread may use it, and when.

    /// The address of the node. The block's closure comes first, in two words.
    @usableFromInline let address: UnsafeMutableRawPointer

    /// The offsets of the words of a node.
    @usableFromInline
    enum Offset {
        /// The children, in the object that holds them.
        @inlinable static var children: Int { 24 }
        /// The value: two words.
        @inlinable static var value: Int { 16 }
        /// The argument of the block: the address of an earlier node, or an index.
        @inlinable static var input: Int { 32 }
        /// The type of block and value.
        @inlinable static var type: Int { 40 }
        /// The flags of block and value.
        @inlinable static var flags: Int { 52 }
        /// The operation that it has become.
        static var object: Int { 56 }
        /// The size of a node.
        static var size: Int { 64 }
    }

    /// Whether the layout of a node is as declared here.
    static var isAsExpected: Bool {
        PlainChildren.offset == Offset.children
            && PlainChildren.layout
                == PlainChildren.Layout(
                    size: Offset.size, block: 0, value: Offset.value, input: Offset.input, type: Offset.type,
                    flags: Offset.flags, object: Offset.object)
    }

    /// The flags in a node for its block and its value.
    @usableFromInline
    struct Flags: OptionSet {
        @usableFromInline let rawValue: UInt32

        @inlinable
        @inline(__always)
        init(rawValue: UInt32) { self.rawValue = rawValue }

        /// The block takes the value of an earlier child.
        @inlinable static var isStep: Flags { Flags(rawValue: 1) }
        /// The block takes an index, and is shared with other children.
        @inlinable static var isIndexed: Flags { Flags(rawValue: 0x8000_0002) }
        /// The shared block is released with this node.
        static var ownsBlock: Flags { Flags(rawValue: 0x4000_0000) }
    }

    @inlinable
    @inline(__always)
    init(address: UnsafeMutableRawPointer) { self.address = address }

    /// One word of the node.
    ///
    /// - Parameters:
    ///   - offset: its offset.
    ///   - type: its type.
    @inlinable
    @inline(__always)
    func word<Word>(_ offset: Int, _ type: Word.Type) -> UnsafeMutablePointer<Word> {
        (address + offset).assumingMemoryBound(to: type)
    }

    /// Fills its words, before it is sent.
    @inlinable
    @inline(__always)
    func fill<Block, Input>(_ block: consuming Block, type: PlainChild.Type, flags: Flags, input: Input) {
        word(Offset.input, Input.self).initialize(to: input)
        fill(block, type: type, flags: flags)
    }

    /// Likewise, without an input.
    @inlinable
    @inline(__always)
    func fill<Block>(_ block: consuming Block, type: PlainChild.Type, flags: Flags) {
        word(0, Block.self).initialize(to: block)
        word(Offset.type, PlainChild.Type.self).initialize(to: type)
        word(Offset.flags, Flags.self).initialize(to: flags)
    }

    // MARK: Type and flags

    /// The type of its block and its value.
    var type: PlainChild.Type { word(Offset.type, PlainChild.Type.self).pointee }

    /// The flags of its block and its value.
    @inline(__always)
    var flags: Flags { word(Offset.flags, Flags.self).pointee }

    /// Whether its value is stored, and can be read. Under no lock.
    var isFinished: Bool { PlainNodes.isFinished(address) }

    /// Its value, once it is stored.
    func value<V>(_ type: V.Type) -> V { word(Offset.value, V.self).pointee }

    /// Copies its value, once it is stored, to uninitialized memory.
    @inline(__always)
    func copyValue<V>(to place: UnsafeMutablePointer<V>) {
        // Values of plain children have no references.
        UnsafeMutableRawPointer(place).copyMemory(
            from: address + Offset.value, byteCount: MemoryLayout<V>.size)
    }

    /// The node whose value it takes.
    var step: PlainNode { PlainNode(address: word(Offset.input, UnsafeMutableRawPointer.self).pointee) }

    // MARK: Block

    /// Takes the block of a node that no other thread can reach.
    func takeBlock<Block>(_ type: Block.Type) -> Block { word(0, Block.self).move() }

    /// Takes a block that has returned, or will not be called.
    func takeBlock() -> AnyClosure {
        if flags.contains(.isIndexed) { return AnyClosure() }
        let block = word(0, AnyClosure.self)
        defer { block.initialize(to: AnyClosure()) }
        return block.move()
    }

    /// A copy of a block that is running.
    var copyOfBlock: AnyClosure { word(0, AnyClosure.self).pointee }

    // MARK: Object

    /// Stores the index of a child that had finished when all were taken, in place of its block.
    func finishedAt(_ index: Int) { word(0, Int.self).initialize(to: index) }

    /// See ``finishedAt(_:)``.
    var index: Int { word(0, Int.self).pointee }

    /// The operation that it has become; nil: none. Under the lock.
    var object: AnyOperation? {
        word(Offset.object, Optional<Unmanaged<AnyOperation>>.self).pointee?.takeUnretainedValue()
    }

    /// Sets the operation that it becomes. Under the lock.
    func set(object: AnyOperation) {
        word(Offset.object, Optional<Unmanaged<AnyOperation>>.self).initialize(to: .passRetained(object))
    }
}
