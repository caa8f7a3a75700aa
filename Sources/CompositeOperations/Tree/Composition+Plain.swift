// Composition+Plain.swift - children without objects: when a composite has them, and how they become operations.
//
// Most children are a block and nothing else, and need nothing that an operation has: CScheduler keeps their states
// (children.c), under no lock. As soon as anything else is required of one of them, the composite takes them all, in one
// step under the tree's lock, and from then on they are operations like any other.
//
// Invariants:
//   I1  a composite has plain children only while nothing else can affect them: the composite executes, no gate above it in
//       the tree is closed, its priority is the default, and it has neither a queue nor a limit to how many may run.
//       Children of other kinds come after them: from the first of those on, no plain ones are added. Code that changes one
//       of these conditions, or reads `children`, takes the plain children first, under the same lock, unless all of them
//       have finished (`isOver`): then nothing affects them any more, and they stay plain to the end.
//   I2  so no composite with plain children ends, is suspended or starts over, except by finishing with them, or when they
//       are over.
//   I3  as long as they are plain, `unfinished` counts all of them as one. That one is subtracted in the call of
//       `finished`, or at the close.
//   I4  the composite holds the store until it settles, or until it has taken the children and its block has returned. The
//       registering thread uses the store without a reference while its block is running. The store holds the tree's
//       domain, so that finished children can be queried under its lock. It holds the composite only from the moment its
//       children are taken until no thread is inside any more: before that, the composite cannot end (I2).
//   I5  a node has an object if it was taken, or had finished and was queried. The node holds the object, so that all
//       handles of a child refer to one operation.

internal import Runs
internal import Scheduling
internal import Synchronization

/// A composition's record of its plain children.
///
/// Not copyable: the fields under the lock are read while the settling thread releases the other fields without the lock,
/// and a copy would have to retain those.
struct PlainPart: ~Copyable {
    /// The store, while the children are plain. Under the lock. With a reference, which the composition releases.
    fileprivate var reference: Unmanaged<PlainChildren>?
    /// How many plain children there are, once others come after them. Under the lock.
    var count = 0
    /// The stores that were taken, the current one last: to be released under no lock.
    var taken: [PlainChildren] = []
    /// Stands in for each child that had finished when they were taken, and has not been queried since.
    var stub: AnyOperation?
    /// The store with which the composite has finished: also to be released under no lock, on the settling thread.
    var last: PlainChildren?

    // Used only by the thread that is executing the registration block.
    /// Where the task-local values of that block are.
    var values: BoundValues.Place?
    /// No plain child can be added in this epoch any more.
    var isRefused = false

    /// The store, while the children are plain. Under the lock.
    @inline(__always)
    var store: PlainChildren? {
        get { reference?.takeUnretainedValue() }
        set {
            let former = reference
            reference = newValue.map { .passRetained($0) }
            former?.release()
        }
    }

    @inline(__always)
    fileprivate func isStore(_ children: PlainChildren) -> Bool {
        reference?.toOpaque() == Unmanaged.passUnretained(children).toOpaque()
    }

    /// Whether there are plain children. Under the lock.
    @inline(__always)
    var areThere: Bool { reference != nil }

    /// Whether there are plain children that may not have finished. Under the lock.
    @inline(__always)
    var areLeft: Bool { reference?._withUnsafeGuaranteedRef { !$0.isOver } ?? false }
}

extension Composition {
    /// The registration block is about to be called, on this thread.
    func registrationBegins() {
        plain.isRefused = !mayHavePlain || !BlockCalls.areRight
        registrar.store(PlainNodes.threadMark, ordering: .relaxed)
    }

    /// The registration block has returned.
    func registrationEnds() {
        registrar.store(0, ordering: .relaxed)
        registering.store(0, ordering: .relaxed)
    }

    /// Room for a plain child; nil: it has to be an operation.
    @inline(__always)
    func appendPlain(epoch: Int32) -> PlainPlace? {
        let thread = registrar.load(ordering: .relaxed)
        guard let children = UnsafeMutableRawPointer(bitPattern: registering.load(ordering: .relaxed)),
            let node = PlainNodes.append(to: children, thread, epoch: epoch)
        else { return openPlain(thread, epoch) { PlainNodes.append(to: $0, thread, epoch: epoch) } }
        // From here on it is known that this is the registering thread.
        return givesItsPlace ? nil : PlainPlace(children: children, node: PlainNode(address: node))
    }

    /// Likewise, for several adjacent children.
    func appendPlain(count: Int, epoch: Int32) -> PlainPlace? {
        let thread = registrar.load(ordering: .relaxed)
        guard let children = UnsafeMutableRawPointer(bitPattern: registering.load(ordering: .relaxed)) else {
            return openPlain(thread, epoch) {
                PlainNodes.append(count: count, to: $0, thread, epoch: epoch)
            }
        }
        guard let node = PlainNodes.append(count: count, to: children, thread, epoch: epoch),
            !givesItsPlace
        else { return nil }
        return PlainPlace(children: children, node: PlainNode(address: node))
    }

    /// Whether a child that is created here inherits a target, or has a context. On the registering thread.
    @inline(__always)
    private var givesItsPlace: Bool {
        COQueues.oneIsInForce || (plain.values?.isEmpty != true && COQueues.giveContextHere)
    }

    /// Room for the first plain child, if the calling thread is the registering thread.
    @inline(never)
    private func openPlain(
        _ thread: UInt, _ epoch: Int32, _ append: (UnsafeMutableRawPointer) -> UnsafeMutableRawPointer?
    ) -> PlainPlace? {
        guard thread == PlainNodes.threadMark, !plain.isRefused, registering.load(ordering: .relaxed) == 0
        else { return nil }
        let composite = owner.takeUnretainedValue()
        let children = composite.look { () -> UnsafeMutableRawPointer? in
            if self.epoch != epoch { return nil }
            plain.isRefused = true
            guard composite.machine.phase == .executing, isRegistering,
                composite.gateIsOpen, composite.priorityMark == 0, !composite.isAdmitted, operations.isEmpty
            else { return nil }
            let made = PlainChildren.make(
                of: composite, in: composite.domain!.takeUnretainedValue(), plainFace, isCascade: isCascade,
                epoch: epoch)
            plain.isRefused = false
            plain.store = made
            unfinished += 1
            return made.address
        }
        guard let children else { return nil }
        plain.values = BoundValues.Place()
        registering.store(UInt(bitPattern: children), ordering: .relaxed)  // the composition holds it (I4)
        guard !givesItsPlace, let node = append(children) else { return nil }
        return PlainPlace(children: children, node: PlainNode(address: node))
    }

    /// Records that all plain children have finished. Under the lock.
    fileprivate func plainAreOver(_ store: PlainChildren) {
        store.isOver = true
        unfinished -= 1
    }

    /// The registration is over. Under the lock.
    ///
    /// - Returns: steps that are to be started.
    func closePlain() -> PlainChildren? {
        guard let store = plain.store else { return nil }
        if store.close() {
            plainAreOver(store)
            return nil
        }
        return isCascade ? store : nil
    }

    /// A child of another kind comes after the plain ones: from here on, no plain ones are added. Under the lock.
    @inline(never)
    func sealPlain() {
        guard let store = plain.store, plain.count == 0 else { return }
        // Only the registering thread knows how many there are. After the close they are few, or it is late.
        guard isRegistering, registrar.load(ordering: .relaxed) == PlainNodes.threadMark, store.count > 0
        else {
            return takePlain()
        }
        registering.store(0, ordering: .relaxed)
        plain.isRefused = true
        plain.count = store.count
        order.join(current: plain.count, inFlight: 0)
    }

    // MARK: Taking

    /// Turns the plain children into operations. Under the lock.
    @inline(never)
    func takePlain() {
        guard let store = plain.store else { return }
        plain.store = nil
        plain.taken.append(store)
        let composite = owner.takeUnretainedValue()
        if !store.isOver { unfinished -= 1 }
        // The children after them, and how many of these are in flight.
        let (others, inFlight, wereOver) = (operations, order.inFlight, store.isOver)
        let unfinishedOthers = unfinished
        operations = []
        operations.reserveCapacity(max(plain.count, 8) + others.count)
        plain.count = 0
        var (current, isBegun) = (0, true)
        store.take {
            if isCascade { (current, isBegun) = ($0.current + 1, $0.isBegun) }
        } _: { address, state in
            let node = PlainNode(address: address)
            let index = operations.count
            if state == .finished {
                operations.append(node.object ?? ensureStub(store.tree))
                if let object = node.object { object.index = UInt32(index) } else { node.finishedAt(index) }
                return
            }
            if node.flags.contains(.isStep), node.step.object == nil {
                let (step, place) = (store.finishedOperation(of: node.step), node.step.index)
                step.index = UInt32(place)
                operations[place] = step
            }
            let operation = node.type.unfinished(node, isRunning: state == .running, of: composite)
            operation.parent = composite
            unfinished += 1
            // A step that is not the current one waits for its turn among its siblings.
            if isBegun, !isCascade || index < current { operation.machine.join(isRunning: state == .running) }
            operation.index = UInt32(index)
            operations.append(operation)
            node.set(object: operation)
            if state == .running { operation.holdParent() }
        }
        let count = operations.count
        operations += others
        if wereOver { return }  // then the order concerns the children after them, by their places among all
        if !isCascade {
            order.join(current: operations.count, inFlight: unfinished - unfinishedOthers + inFlight)
        } else {
            order.join(
                current: isBegun ? min(current, count) : 0,
                inFlight: isBegun ? min(unfinished - unfinishedOthers, 1) : 0)
        }
    }

    private func ensureStub(_ tree: Domain) -> AnyOperation {
        if let stub = plain.stub { return stub }
        let made = COOperation<Void>(endedIn: tree)
        made.machine.finishAtOnce()
        made.store(())
        plain.stub = made
        return made
    }

    /// All children, each of which is an operation from now on. Under the lock.
    func childrenAsOperations() -> ContiguousArray<AnyOperation> {
        guard !children.isEmpty, let stub = plain.stub, let store = plain.taken.last else {
            return operations
        }
        var index = 0
        store.forEach { address in
            if index < operations.count, operations[index] === stub {
                operations[index] = store.finishedOperation(of: PlainNode(address: address))
            }
            index += 1
        }
        return operations
    }

    /// Whether an operation is the child at a place that has only the stub. Under the lock.
    func isStub(_ index: Int, for operation: AnyOperation) -> Bool {
        guard let stub = plain.stub, operations[index] === stub, let store = plain.taken.last else {
            return false
        }
        return PlainNode(address: store.node(at: index)).object === operation
    }

    /// A new epoch begins: plain children that have all finished are dropped, without being taken. Under the lock.
    ///
    /// - Returns: the dropped store, to be released under no lock.
    func dropPlain() -> PlainChildren? {
        guard let store = plain.store, store.isOver else { return nil }
        plain.store = nil
        plain.count = 0
        return store
    }

    /// The composite is settled. Under the lock.
    func giveUpPlain() {
        guard let reference = plain.reference else { return }
        plain.last = reference.takeRetainedValue()  // `last` was nil
        plain.reference = nil
        plain.count = 0
    }

    /// Takes out the stores of earlier epochs, which are no longer needed. Under the lock; to be released under none.
    func takeUpTaken() -> [PlainChildren] {
        if plain.taken.isEmpty { return [] }
        if plain.taken.last?.epoch == epoch {
            let former = plain.taken.dropLast()
            plain.taken.removeFirst(plain.taken.count - 1)
            return Array(former)
        }
        defer { plain.taken = [] }
        return plain.taken
    }

    /// On the thread that settled the composite, under no lock.
    @inline(__always)
    func releasePlain() {
        if plain.last != nil || plain.stub != nil || !plain.taken.isEmpty { releaseStores() }
    }

    @inline(never)
    private func releaseStores() {
        plain.last?.giveUpBlocks()
        plain.last = nil
        plain.stub = nil
        if !plain.taken.isEmpty {
            plain.taken.giveUpBlocks()
            plain.taken = []
        }
    }
}

extension [PlainChildren] {
    /// Releases the contexts that the blocks of the taken children share. Under no lock.
    func giveUpBlocks() { for children in self { children.giveUpBlocks() } }
}

/// Room for a plain child, to be filled by the registering thread. Valid while its block is running.
@usableFromInline
struct PlainPlace {
    /// The registering code knows only this address.
    @usableFromInline let children: UnsafeMutableRawPointer
    @usableFromInline let node: PlainNode

    /// The object that holds the children.
    @inlinable
    @inline(__always)
    var holder: Unmanaged<AnyObject> { .fromOpaque(children - PlainNode.Offset.children) }

    /// Publishes the child.
    ///
    /// - Returns: false: it has to be an operation after all.
    @usableFromInline
    func send() -> Bool { PlainNodes.send(node.address, of: children) }

    /// Publishes several adjacent children. The result is as above, for all of them.
    func send(count: Int) -> Bool { PlainNodes.send(node.address, count: count, of: children) }
}

extension AnyOperation {
    /// Room for a plain child of this composite; nil: it has to be an operation.
    @usableFromInline
    final func plainPlace(epoch: Int32) -> PlainPlace? {
        compositionReference?._withUnsafeGuaranteedRef { $0.appendPlain(epoch: epoch) }
    }

    /// Likewise, for several adjacent children.
    final func plainPlace(epoch: Int32, count: Int) -> PlainPlace? {
        compositionReference?._withUnsafeGuaranteedRef { $0.appendPlain(count: count, epoch: epoch) }
    }

    /// Likewise, for a child that takes the value of another one, if that is a plain child of this registration.
    @usableFromInline
    final func plainPlace(epoch: Int32, after step: PlainNode?, of holder: AnyObject) -> PlainPlace? {
        guard step != nil, let place = plainPlace(epoch: epoch),
            place.holder.toOpaque() == Unmanaged.passUnretained(holder).toOpaque()
        else { return nil }
        return place
    }

    /// The last of its plain children has finished.
    ///
    /// - Returns: whether they were taken meanwhile.
    fileprivate final func plainHaveFinished(_ store: PlainChildren) -> Bool {
        change { effects in
            guard let composition, composition.plain.isStore(store) else {
                // The code that took them may not have started the other children, or completed the composite.
                if let composition, composition.epoch == store.epoch {
                    if composition.isCascade, machine.phase == .executing {
                        composition.startChildren(&effects)
                    }
                    composition.completeIfDone(self, &effects)
                }
                return true
            }
            composition.plainAreOver(store)
            if composition.isCascade, composition.plain.count != 0 { composition.startChildren(&effects) }
            composition.completeIfDone(self, &effects)
            return false
        }
    }

}

extension PlainChildren {
    /// Their composite; valid while they are plain, or a thread is inside.
    static func composite(of children: UnsafeMutableRawPointer) -> Unmanaged<AnyOperation> {
        .fromOpaque(object(at: children)._withUnsafeGuaranteedRef { $0.composite.toOpaque() })
    }

    /// The domain of the tree.
    var tree: Domain { unsafeDowncast(domain.takeUnretainedValue(), to: Domain.self) }

    /// The operation of a child, which exists from now on. Under no lock.
    func operation(of node: PlainNode) -> AnyOperation {
        tree.look {
            if let object = node.object { return object }
            // A child that has neither finished nor been taken is taken here. The composite still exists (I2).
            if !node.isFinished, !wereTaken {
                Unmanaged<AnyOperation>.fromOpaque(composite.toOpaque())._withUnsafeGuaranteedRef {
                    $0.composition!.takePlain()
                }
            }
            // Of the children that were taken, only those that had finished have no object.
            return finishedOperation(of: node)
        }
    }

    /// The operation of a finished child, which exists from now on. Under the lock.
    func finishedOperation(of node: PlainNode) -> AnyOperation {
        if let object = node.object { return object }
        let made = node.type.finished(node, in: tree)
        if wereTaken { made.index = UInt32(truncatingIfNeeded: node.index) }
        node.set(object: made)
        hasObjects()
        return made
    }

    /// Calls `body` with a child's node, and with the child as an operation.
    fileprivate static func with(
        _ children: UnsafeMutableRawPointer, _ child: UnsafeMutableRawPointer,
        _ body: (PlainNode, AnyOperation) -> Void
    ) {
        let node = PlainNode(address: child)
        body(node, object(at: children).takeUnretainedValue().operation(of: node))
    }
}

/// The functions of composites that CScheduler calls.
private let plainFace = PlainChildren.Face(
    release: BlockCalls.release,
    call: BlockCalls.ofChild,
    finished: { children in
        PlainChildren.object(at: children)._withUnsafeGuaranteedRef { store in
            PlainChildren.composite(of: children)._withUnsafeGuaranteedRef { $0.plainHaveFinished(store) }
        }
    },
    turn: { children, child in PlainChildren.with(children, child) { $1.turn() } },
    returned: { children, child in
        PlainChildren.with(children, child) { node, operation in
            let block = node.takeBlock()  // released at the end, under no lock
            node.type.returned(node, as: operation)
            withExtendedLifetime(block) {}
        }
    },
    threw: { children, child, error in
        PlainChildren.with(children, child) { node, operation in
            let block = node.takeBlock()  // released at the end, under no lock
            operation.threw(BlockCalls.error(of: error), 1)
            withExtendedLifetime(block) {}
        }
    },
    refused: { children, child in PlainChildren.with(children, child) { $1.turnIsRefused() } })

/// Calls the block of a plain child where the fast path is not enough: its value is not stored in its node, or it must not
/// see the surroundings of a waiter that may be below it on the stack.
func callPlainChild(
    _ children: UnsafeMutableRawPointer, _ child: UnsafeMutableRawPointer
) -> UnsafeMutableRawPointer? {
    let composite = PlainChildren.composite(of: children)
    let node = PlainNode(address: child)
    return COQueues.apart(of: composite) { BlocksOnStack.with(composite, node) { BlockCalls.call(node) } }
}
