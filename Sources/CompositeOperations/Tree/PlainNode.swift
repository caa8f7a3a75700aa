// PlainNode.swift - the node of a child without an object, as the code of whoever registers it fills it.

internal import Runs

/// A child without an object: where its node is. Its children keep it.
@usableFromInline
struct PlainNode: @unchecked Sendable {
    // Unchecked: of each word it is said in children.c and Composition+Plain.swift who uses it when.

    /// Of the node. The block's closure lies first, in two words.
    @usableFromInline let address: UnsafeMutableRawPointer

    /// Where the words of a node are.
    @usableFromInline
    enum Offset {
        /// The children, in the object that holds them.
        @inlinable static var children: Int { 24 }
        /// The value: two words.
        @inlinable static var value: Int { 16 }
        /// The argument of the block: the address of an earlier node, or an index.
        @inlinable static var input: Int { 32 }
        /// The kind of block and value.
        @inlinable static var type: Int { 40 }
        /// Which kind of block it is, and of value.
        @inlinable static var flags: Int { 52 }
        /// The operation that it has become.
        static var object: Int { 56 }
        /// Of a node.
        static var size: Int { 64 }
    }

    /// Whether a node is as it is seen here.
    static var isAsExpected: Bool {
        PlainChildren.offset == Offset.children
            && PlainChildren.layout
                == PlainChildren.Layout(
                    size: Offset.size, block: 0, value: Offset.value, input: Offset.input, type: Offset.type,
                    flags: Offset.flags, object: Offset.object)
    }

    /// A node's word on its block and its value.
    @usableFromInline
    struct Flags: OptionSet {
        @usableFromInline let rawValue: UInt32

        @inlinable
        @inline(__always)
        init(rawValue: UInt32) { self.rawValue = rawValue }

        /// The block is given the value of an earlier child.
        @inlinable static var isStep: Flags { Flags(rawValue: 1) }
        /// The block is given an index, and is that of others, too.
        @inlinable static var isIndexed: Flags { Flags(rawValue: 0x8000_0002) }
        /// The block that it has with others goes with it.
        static var ownsBlock: Flags { Flags(rawValue: 0x4000_0000) }
    }

    @inlinable
    @inline(__always)
    init(address: UnsafeMutableRawPointer) { self.address = address }

    /// One word of it.
    ///
    /// - Parameters:
    ///   - offset: where.
    ///   - type: as what.
    @inlinable
    @inline(__always)
    func word<Word>(_ offset: Int, _ type: Word.Type) -> UnsafeMutablePointer<Word> {
        (address + offset).assumingMemoryBound(to: type)
    }

    /// Its words, before it is sent.
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

    // MARK: What it says

    /// The kind of its block and its value.
    var type: PlainChild.Type { word(Offset.type, PlainChild.Type.self).pointee }

    /// Which kinds these are.
    @inline(__always)
    var flags: Flags { word(Offset.flags, Flags.self).pointee }

    /// Whether its value is there. Under no lock; then the value can be read.
    var isFinished: Bool { PlainNodes.isFinished(address) }

    /// Its value, when that is there.
    func value<V>(_ type: V.Type) -> V { word(Offset.value, V.self).pointee }

    /// Copies its value, when that is there, to where there is none.
    @inline(__always)
    func copyValue<V>(to place: UnsafeMutablePointer<V>) {
        // Values of plain children have no references.
        UnsafeMutableRawPointer(place).copyMemory(
            from: address + Offset.value, byteCount: MemoryLayout<V>.size)
    }

    /// The node whose value it is given.
    var step: PlainNode { PlainNode(address: word(Offset.input, UnsafeMutableRawPointer.self).pointee) }

    // MARK: Its block

    /// That of one that is in nobody else's reach.
    func takeBlock<Block>(_ type: Block.Type) -> Block { word(0, Block.self).move() }

    /// That of one that has returned, or is not called.
    func takeBlock() -> AnyClosure {
        if flags.contains(.isIndexed) { return AnyClosure() }
        let block = word(0, AnyClosure.self)
        defer { block.initialize(to: AnyClosure()) }
        return block.move()
    }

    /// A copy of that of one that runs.
    var copyOfBlock: AnyClosure { word(0, AnyClosure.self).pointee }

    // MARK: Its object

    /// Which child it is, of one that had finished when all were taken: where its block was.
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
