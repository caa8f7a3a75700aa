// PlainChildren.swift - one object for all children of a composite that need no objects of their own. The first nodes are inside
// it, as is the state that CScheduler keeps for all of them (children.c, which has the protocol).

internal import CScheduler
internal import CScheduler.Internals
internal import CompositeOperationsBasics
internal import Scheduling

/// The children of one run of a composite's registration block.
package final class PlainChildren: ManagedBuffer<Int, UInt64> {
    // Not Sendable, as its superclass is not. It is nevertheless used by all threads: CScheduler's protocol determines which
    // thread may access which word; the rest is guarded by the embedder's lock.

    /// The functions that the embedder provides: see `csched_children_face`.
    package final class Face: @unchecked Sendable {
        // Unchecked: immutable.
        fileprivate let pointer: UnsafePointer<csched_children_face>

        /// - Parameter release: the runtime's release function.
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

    /// The number of nodes inside the object.
    private static var first: Int { 11 }
    /// The offset of the elements of a buffer whose header is a word.
    package static var offset: Int { 24 }

    private var fields: UnsafeMutablePointer<csched_children> {
        (UnsafeMutableRawPointer(Unmanaged.passUnretained(self).toOpaque()) + Self.offset)
            .assumingMemoryBound(to: csched_children.self)
    }

    /// The object whose fields are at an address.
    package static func object(at fields: UnsafeMutableRawPointer) -> Unmanaged<PlainChildren> {
        .fromOpaque(fields - offset)
    }

    /// Creates an empty object. On the registering thread.
    ///
    /// - Parameters:
    ///   - composite: the parent of the children; retained only where a thread inside might otherwise outlive it.
    ///   - domain: an object of the embedder; retained.
    ///   - epoch: the embedder's number for the registration.
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

    /// The offsets of the words of a node, in bytes.
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

    /// The layout; nil if the actual offsets are not as this file expects.
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

    /// The domain passed to `make`.
    package var domain: Unmanaged<AnyObject> { .fromOpaque(fields.pointee.owner!) }
    /// The composite; valid while the children are plain, or a thread is inside.
    package var composite: Unmanaged<AnyObject> { .fromOpaque(fields.pointee.composite!) }
    /// The number of the registration.
    package var epoch: Int32 { fields.pointee.epoch }
    /// Releases the resources that blocks share, unless a thread is inside, which then releases them on leaving. Call under no
    /// lock.
    package func giveUpBlocks() { if !fields.pointee.is_in_use { csched_children_give_up(fields) } }
    /// Records that children have become objects. Under the embedder's lock.
    package func hasObjects() { fields.pointee.has_objects = true }
    /// The number of children. On the registering thread.
    package var count: Int { Int(fields.pointee.number) }
    /// Whether all children have finished and the embedder has processed that. Under the embedder's lock.
    package var isOver: Bool {
        get { fields.pointee.is_over }
        set { fields.pointee.is_over = newValue }
    }

    // MARK: Registration

    /// The address of the fields, to be passed to ``PlainNodes``. Valid during the lifetime of this object.
    package var address: UnsafeMutableRawPointer { UnsafeMutableRawPointer(fields) }

    /// Ends the registration. Call under the embedder's lock, and only if the children have not been taken.
    ///
    /// - Returns: whether all children have finished.
    package func close() -> Bool { csched_children_close(fields) }

    /// Begins a closed cascade. Call under no lock.
    package func begin() { csched_children_begin(fields) }

    // MARK: Taking

    /// The state of a child when it was taken.
    package enum State { case queued, running, finished }

    /// The progress of the children when they were taken.
    package struct Taken {
        /// Of a cascade: the number of finished steps.
        package let current: Int
        /// Of a cascade: whether it has begun, so that its current step is waiting for its turn or running.
        package let isBegun: Bool
    }

    /// Whether the children were taken. Under the embedder's lock.
    package var wereTaken: Bool { fields.pointee.was_taken }

    /// Calls `body` with each child, after the children were taken. Under the embedder's lock.
    package func forEach(_ body: (UnsafeMutableRawPointer) -> Void) {
        var walk = csched_children_walk(fields)
        while let child = csched_children_walk_next(&walk) { body(UnsafeMutableRawPointer(child)) }
    }

    /// The node of a child, after the children were taken. Under the embedder's lock.
    ///
    /// - Complexity: O(index).
    package func node(at index: Int) -> UnsafeMutableRawPointer {
        var walk = csched_children_walk(fields)
        for _ in 0..<index { _ = csched_children_walk_next(&walk) }
        return UnsafeMutableRawPointer(csched_children_walk_next(&walk)!)
    }

    /// Takes all children; called once. Under the embedder's lock.
    ///
    /// - Parameters:
    ///   - begin: called with the progress of the children.
    ///   - body: called with each child, in registration order.
    package func take(_ begin: (Taken) -> Void, _ body: (UnsafeMutableRawPointer, State) -> Void) {
        // Retained for threads that may be inside.
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

/// The functions for each child. They take addresses, since references would be counted, and would need the metadata of a class.
package enum PlainNodes {
    /// The identity of the calling thread.
    package static var threadMark: UInt { csched_thread_mark() }

    /// Reserves a node for a child; nil if the embedder must create an object.
    ///
    /// - Parameters:
    ///   - children: not accessed unless called on the registering thread.
    ///   - thread: the mark of the registering thread.
    ///   - epoch: the expected epoch; nil is also returned if the actual epoch differs.
    package static func append(
        to children: UnsafeMutableRawPointer, _ thread: UInt, epoch: Int32
    ) -> UnsafeMutableRawPointer? {
        UnsafeMutableRawPointer(csched_children_append(at(children), thread, epoch))
    }

    /// Publishes a child that was appended and filled in.
    ///
    /// - Returns: false if the other children were taken in the meantime: the node then still belongs to the caller.
    package static func send(_ node: UnsafeMutableRawPointer, of children: UnsafeMutableRawPointer) -> Bool {
        csched_children_send(at(children), child(node))
    }

    /// As ``append(to:_:epoch:)``, for several children, whose nodes are consecutive.
    package static func append(
        count: Int, to children: UnsafeMutableRawPointer, _ thread: UInt, epoch: Int32
    ) -> UnsafeMutableRawPointer? {
        UnsafeMutableRawPointer(csched_children_append_range(at(children), thread, epoch, count))
    }

    /// Publishes children that were appended and filled in, all or none of them: see ``send(_:of:)``.
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

    /// Whether a child has its value, which can then be read. Needs no lock.
    package static func isFinished(_ node: UnsafeMutableRawPointer) -> Bool {
        csched_child_state_of(child(node)) == .finished
    }
}
