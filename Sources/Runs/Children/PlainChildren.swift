// PlainChildren.swift - the children of a composite that need no object each, in one object: the first nodes lie in it, and what
// CScheduler keeps of them all (children.c, which says what may happen when).

internal import CScheduler
internal import CScheduler.Internals
internal import CompositeOperationsBasics
internal import Scheduling

/// The children of one run of a composite's registration block.
package final class PlainChildren: ManagedBuffer<Int, UInt64> {
    // Not Sendable, as its superclass is not; all the same it is used by all threads: CScheduler says which word by whom, the
    // rest is under the embedder's lock.

    /// The functions that the embedder provides: see `csched_children_face`.
    package final class Face: @unchecked Sendable {
        // Unchecked: it does not change.
        fileprivate let pointer: UnsafePointer<csched_children_face>

        /// - Parameter release: the runtime's.
        package init(
            release: @escaping @convention(c) (UnsafeMutableRawPointer?) -> Void,
            call:
                @escaping @convention(c) (UnsafeMutableRawPointer, UnsafeMutableRawPointer) ->
                UnsafeMutableRawPointer?,
            finished: @escaping @convention(c) (UnsafeMutableRawPointer) -> Bool,
            turn: @escaping @convention(c) (UnsafeMutableRawPointer, UnsafeMutableRawPointer) -> Void,
            returned: @escaping @convention(c) (UnsafeMutableRawPointer, UnsafeMutableRawPointer) -> Void,
            threw:
                @escaping @convention(c) (
                    UnsafeMutableRawPointer, UnsafeMutableRawPointer, UnsafeMutableRawPointer
                ) -> Void,
            refused: @escaping @convention(c) (UnsafeMutableRawPointer, UnsafeMutableRawPointer) -> Void
        ) {
            let made = UnsafeMutablePointer<csched_children_face>.allocate(capacity: 1)
            made.initialize(
                to: csched_children_face(
                    call: call, release: release, finished: finished, turn: turn, returned: returned,
                    threw: threw, refused: refused,
                    let_go: { children in
                        csched_children_give_up(PlainNodes.at(children))
                        Unmanaged<AnyObject>.fromOpaque(PlainNodes.at(children).pointee.composite!).release()
                        PlainChildren.object(at: children).release()
                    }))
            pointer = UnsafePointer(made)
        }
    }

    /// So many nodes lie in the object.
    private static var first: Int { 11 }
    /// Where the elements of a buffer lie whose header is a word.
    package static var offset: Int { 24 }

    private var fields: UnsafeMutablePointer<csched_children> {
        (UnsafeMutableRawPointer(Unmanaged.passUnretained(self).toOpaque()) + Self.offset)
            .assumingMemoryBound(to: csched_children.self)
    }

    /// The children whose fields are at an address.
    package static func object(at fields: UnsafeMutableRawPointer) -> Unmanaged<PlainChildren> {
        .fromOpaque(fields - offset)
    }

    /// None so far. On the thread that registers.
    ///
    /// - Parameters:
    ///   - composite: whose children they are; held where it may not outlive whoever is inside.
    ///   - domain: the embedder's; held.
    ///   - epoch: the embedder's number of the registration.
    package static func make(
        of composite: AnyObject, in domain: AnyObject, _ face: Face, isCascade: Bool, epoch: Int32
    ) -> PlainChildren {
        let words = MemoryLayout<UInt64>.stride
        let size = MemoryLayout<csched_children>.size + first * MemoryLayout<csched_child>.stride
        let buffer = PlainChildren.create(minimumCapacity: (size + words - 1) / words) { _ in 0 }
        let made = unsafeDowncast(buffer, to: PlainChildren.self)
        let fields = made.fields
        let nodes = UnsafeMutableRawPointer(fields + 1).assumingMemoryBound(to: csched_child.self)
        csched_children_init(
            fields, face.pointer, Unmanaged.passRetained(domain).toOpaque(), Scheduler.handleOfShared,
            isCascade,
            nodes, first)
        fields.pointee.composite = Unmanaged.passUnretained(composite).toOpaque()
        fields.pointee.epoch = epoch
        InstanceCount.plainChildren.add(1)
        return made
    }

    /// Where the words of a node are, in bytes.
    package struct Layout: Equatable {
        package let size, block, value, input, type, flags, object: Int

        package init(size: Int, block: Int, value: Int, input: Int, type: Int, flags: Int, object: Int) {
            self.size = size
            self.block = block
            self.value = value
            self.input = input
            self.type = type
            self.flags = flags
            self.object = object
        }
    }

    /// Where they are; nil: nothing is where it is looked for here.
    package static let layout: Layout? = {
        let child = MemoryLayout<csched_child>.self
        let buffer = ManagedBuffer<Int, UInt64>.create(minimumCapacity: 1) { _ in 0 }
        let object = UnsafeMutableRawPointer(Unmanaged.passUnretained(buffer).toOpaque())
        let elements = buffer.withUnsafeMutablePointerToElements { UnsafeMutableRawPointer($0) - object }
        guard elements == offset, let block = child.offset(of: \.code), let value = child.offset(of: \.value),
            let input = child.offset(of: \.input), let type = child.offset(of: \.type),
            let flags = child.offset(of: \.flags), let object = child.offset(of: \.object)
        else { return nil }
        return Layout(
            size: child.stride, block: block, value: value, input: input, type: type, flags: flags,
            object: object)
    }()

    deinit {
        let fields = fields
        csched_children_destroy(fields)
        InstanceCount.plainChildren.add(-1)
        Unmanaged<AnyObject>.fromOpaque(fields.pointee.owner!).release()
    }

    /// The owner that was named at the beginning.
    package var domain: Unmanaged<AnyObject> { .fromOpaque(fields.pointee.owner!) }
    /// The composite, as long as they are plain, or somebody is inside.
    package var composite: Unmanaged<AnyObject> { .fromOpaque(fields.pointee.composite!) }
    /// The number of the registration.
    package var epoch: Int32 { fields.pointee.epoch }
    /// Gives up what blocks have together, unless somebody is inside, who does so then. Under no lock.
    package func giveUpBlocks() { if !fields.pointee.is_in_use { csched_children_give_up(fields) } }
    /// Children have become objects. Under its lock.
    package func hasObjects() { fields.pointee.has_objects = true }
    /// How many there are. On the registering thread.
    package var count: Int { Int(fields.pointee.number) }
    /// All have finished, and the embedder knows it. Under its lock.
    package var isOver: Bool {
        get { fields.pointee.is_over }
        set { fields.pointee.is_over = newValue }
    }

    // MARK: Registration

    /// Where its fields are: what ``PlainNodes`` is given. Valid as long as the children.
    package var address: UnsafeMutableRawPointer { UnsafeMutableRawPointer(fields) }

    /// The registration is over. Under the embedder's lock; they were not taken.
    ///
    /// - Returns: whether all have finished.
    package func close() -> Bool { csched_children_close(fields) }

    /// Begins a cascade that was closed. Under no lock.
    package func begin() { csched_children_begin(fields) }

    // MARK: Taking

    /// The state of a child when it was taken.
    package enum State { case queued, running, finished }

    /// Where they were when they were taken.
    package struct Taken {
        /// Of a cascade: how many steps have finished.
        package let current: Int
        /// Of a cascade: it was begun, so that its current step waits for its turn, or runs.
        package let isBegun: Bool
    }

    /// They were taken. Under the embedder's lock.
    package var wereTaken: Bool { fields.pointee.was_taken }

    /// Calls `body` with each of them, when they were taken. Under the embedder's lock.
    package func forEach(_ body: (UnsafeMutableRawPointer) -> Void) {
        var walk = csched_children_walk(fields)
        while let child = csched_children_walk_next(&walk) { body(UnsafeMutableRawPointer(child)) }
    }

    /// The node of one of them, when they were taken. Under the embedder's lock.
    ///
    /// - Complexity: O(index).
    package func node(at index: Int) -> UnsafeMutableRawPointer {
        var walk = csched_children_walk(fields)
        for _ in 0..<index { _ = csched_children_walk_next(&walk) }
        return UnsafeMutableRawPointer(csched_children_walk_next(&walk)!)
    }

    /// Takes all children, once. Under the embedder's lock.
    ///
    /// - Parameters:
    ///   - begin: is told where they are.
    ///   - body: is given each of them, in the order of registration.
    package func take(_ begin: (Taken) -> Void, _ body: (UnsafeMutableRawPointer, State) -> Void) {
        // For those who may be inside.
        _ = Unmanaged.passRetained(self)
        _ = composite.retain()
        var taking = csched_children_take(fields)
        begin(Taken(current: Int(taking.current), isBegun: taking.is_begun))
        var state = csched_child_state.queued
        while let child = csched_children_take_next(fields, &taking, &state) {
            let node = UnsafeMutableRawPointer(child)
            switch state {
            case .finished: body(node, .finished)
            case .running: body(node, .running)
            default: body(node, .queued)
            }
        }
        let isInUse = csched_children_taken(fields, &taking) && !isOver
        fields.pointee.is_in_use = isInUse
        fields.pointee.was_taken = true
        fields.pointee.taken = taking.taken
        if isInUse { return }
        composite.release()
        Unmanaged.passUnretained(self).release()
    }
}

/// The functions for each child. By addresses, as references would be counted, and the metadata of a class would be asked for.
package enum PlainNodes {
    /// The identity of the calling thread.
    package static var threadMark: UInt { csched_thread_mark() }

    /// Room for a child; nil: the embedder is to make an object.
    ///
    /// - Parameters:
    ///   - children: is not looked at on another thread than the registering one.
    ///   - thread: the mark of that one.
    ///   - epoch: nil, too, if it is another one's.
    package static func append(
        to children: UnsafeMutableRawPointer, _ thread: UInt, epoch: Int32
    ) -> UnsafeMutableRawPointer? {
        UnsafeMutableRawPointer(csched_children_append(at(children), thread, epoch))
    }

    /// Publishes the child that was appended, and filled.
    ///
    /// - Returns: false: it is the caller's still, as all others were taken meanwhile.
    package static func send(_ node: UnsafeMutableRawPointer, of children: UnsafeMutableRawPointer) -> Bool {
        csched_children_send(at(children), child(node))
    }

    /// Room for some children next to each other, likewise.
    package static func append(
        count: Int, to children: UnsafeMutableRawPointer, _ thread: UInt, epoch: Int32
    ) -> UnsafeMutableRawPointer? {
        UnsafeMutableRawPointer(csched_children_append_range(at(children), thread, epoch, count))
    }

    /// Publishes the children that were appended, and filled; likewise, none of them was taken.
    package static func send(
        _ first: UnsafeMutableRawPointer, count: Int, of children: UnsafeMutableRawPointer
    ) -> Bool {
        csched_children_send_range(at(children), child(first), count)
    }

    fileprivate static func at(_ children: UnsafeMutableRawPointer) -> UnsafeMutablePointer<csched_children> {
        children.assumingMemoryBound(to: csched_children.self)
    }

    private static func child(_ node: UnsafeMutableRawPointer) -> UnsafeMutablePointer<csched_child> {
        node.assumingMemoryBound(to: csched_child.self)
    }

    /// Whether the value of a child is there. Under no lock; then the value can be read.
    package static func isFinished(_ node: UnsafeMutableRawPointer) -> Bool {
        csched_child_state_of(child(node)) == .finished
    }
}
