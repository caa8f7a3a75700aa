// Surroundings.swift - the surroundings of a block: the default queue in force, and the slots that are held for it.
//
// The default queue, and the slots of the block and of its waiters, are a task-local value, so that a task that the
// block creates has them, too. A waiting thread may run blocks of other operations nested on its stack, which must not
// see that value. So the value is bound for each block, to nil if there is none.
//
// The slots that are held on a thread's stack are stored per thread (`HeldSlot.onThisThread`). Their holders are blocks
// that have not returned, and the callers of a sync operation, wherever they wait. No holder can go on before the code
// above it has returned: a request for such a slot there would wait for ever.

internal import Runs
internal import Synchronization

/// A slot that a queue has given to a block.
struct HeldSlot: @unchecked Sendable {
    // Unchecked: the queue reads the ticket under its lock.

    /// Identifies its queue, and does not hold it: once the queue is gone, no slot of it is requested.
    let ticket: COOperationQueue.Ticket
    /// How many blocks of the operation had begun before this one.
    let runs: Int32
    /// The wait for a sync operation within the slot; nil: the slot is the block's own.
    var wait: Wait?

    /// A wait for a sync operation.
    final class Wait: Sendable {
        let isOver = Atomic(false)
    }

    /// Whether it is a slot of a queue, has not been given back, and its holder still waits. Under no lock.
    func isHeld(of queue: COOperationQueue) -> Bool {
        ticket.isOf(queue) && wait?.isOver.load(ordering: .acquiring) != true
            && queue.isHeld(ticket, since: runs)
    }

    /// The identity of a slot.
    private struct Key: Hashable {
        let ticket: ObjectIdentifier
        let runs: Int32
    }

    private var key: Key { Key(ticket: ObjectIdentifier(ticket), runs: runs) }

    /// A slot as its operation holds it, while the block is running.
    struct Reference {
        let ticket: Unmanaged<COOperationQueue.Ticket>
        let runs: Int32

        var slot: HeldSlot { HeldSlot(ticket: ticket.takeUnretainedValue(), runs: runs) }
    }

    // MARK: Per thread

    /// The slots of a block that has not returned: its own, and those of its callers that are not held below it.
    private struct Frame {
        let own: Reference?
        var callers: UnsafeBufferPointer<HeldSlot>?
        let below: UnsafeMutablePointer<Frame>?
    }

    private static let value = ThreadValue()

    private static var innermost: UnsafeMutablePointer<Frame>? {
        value.here?.assumingMemoryBound(to: Frame.self)
    }

    /// The slots that are held on the stack of this thread, the innermost last. Each is listed once: a block has its
    /// slot in one frame, and callers add only those that are not listed yet.
    ///
    /// - Complexity: O(slots).
    static var onThisThread: [HeldSlot] {
        var found: [HeldSlot] = []
        var next = innermost
        while let frame = next?.pointee {
            if let own = frame.own { found.append(own.slot) }
            if let callers = frame.callers { found.append(contentsOf: callers.reversed()) }
            next = frame.below
        }
        found.reverse()
        return found
    }

    /// Calls `body` with these slots held on the stack, in addition to those that are held below it.
    ///
    /// - Parameters:
    ///   - callers: the slots on the stack of a sync operation's caller, and of the calling block.
    ///   - own: the block's own slot.
    /// - Complexity: O(all slots).
    fileprivate static func holding(_ callers: HeldSlots, _ own: Reference?, _ body: () -> Void) {
        if own == nil, callers.isEmpty { return body() }
        var known: Set<Key> = []
        if !callers.isEmpty { for slot in onThisThread { known.insert(slot.key) } }
        let others = (callers.onStack + callers.ofBlock).filter { known.insert($0.key).inserted }
        others.withUnsafeBufferPointer { others in
            push(Frame(own: own, callers: others, below: innermost), body)
        }
    }

    /// Same as above, for a block's own slot only.
    @inline(__always)
    fileprivate static func holding(_ own: Reference, _ body: () -> Void) {
        push(Frame(own: own, below: innermost), body)
    }

    @inline(__always)
    private static func push(_ frame: Frame, _ body: () -> Void) {
        var frame = frame
        let below = frame.below
        withUnsafeMutablePointer(to: &frame) { frame in
            value.set(frame)
            body()
            value.set(below)
        }
    }
}

/// The slots that are held for the caller.
struct HeldSlots {
    /// On the stack of the calling thread.
    var onStack: [HeldSlot] = []
    /// Of the calling block, and of its waiters; also in a task of that block.
    var ofBlock: [HeldSlot] = []

    static var here: HeldSlots { HeldSlots(onStack: HeldSlot.onThisThread, ofBlock: COQueues.slots) }

    /// Records that the block of a sync operation has these slots, while their holder waits for it.
    mutating func waits() {
        if ofBlock.isEmpty { return }
        let wait = HeldSlot.Wait()
        for index in ofBlock.indices { ofBlock[index].wait = wait }
    }

    /// The wait is over.
    func end() { ofBlock.first?.wait?.isOver.store(true, ordering: .releasing) }

    /// Whether a slot of a queue is among them. Under no lock.
    func contains(_ queue: COOperationQueue) -> Bool {
        (onStack + ofBlock).contains { $0.isHeld(of: queue) }
    }

    var isEmpty: Bool { onStack.isEmpty && ofBlock.isEmpty }
}

/// The surroundings of a block, bound while it is called.
struct Surroundings {
    /// The default queue of that part of the program.
    var scope: COQueues.Scope?
    /// The slots of the block's waiters.
    var callers: [HeldSlot] = []
    /// The block's own slot.
    var own: HeldSlot?
    /// While inspection is on: the number of the block's operation; for a plain child, that of its composite. 0: none.
    var block: UInt64 = 0

    var isEmpty: Bool { scope == nil && own == nil && callers.isEmpty && block == 0 }
    var slots: [HeldSlot] { if let own { callers + [own] } else { callers } }
}

extension COQueues {
    /// The surroundings of the block that runs here, or that created the task that runs here.
    @TaskLocal static var surroundings: Surroundings?

    /// The default queue of a part of the program.
    static var scoped: Scope? { surroundings?.scope }
    /// The slots of the block that runs here, or that created the task that runs here, and of its waiters.
    static var slots: [HeldSlot] { surroundings?.slots ?? [] }

    /// Calls a block of an operation.
    ///
    /// - Parameters:
    ///   - scope: the scope in which the operation was created.
    ///   - callers: the slots of a sync operation's caller.
    ///   - slot: the block's own.
    ///   - operation: the operation whose block it is.
    static func calling(
        in scope: Scope?, _ callers: HeldSlots, _ slot: HeldSlot.Reference?, _ context: OperationContext?,
        of operation: AnyOperation, _ body: () -> Void
    ) {
        if !haveSurroundings, context == nil { return body() }
        func bound() {
            var surroundings = Surroundings(scope: scope, callers: callers.ofBlock, own: slot?.slot)
            surroundings.block = operation.numberForDumps
            within(surroundings) {
                HeldSlot.holding(callers, slot, body)
            }
        }
        if let context { context.run(bound) } else { bound() }
    }

    /// Calls the block of an operation whose only surroundings are a slot.
    @inline(__always)
    static func calling(_ slot: HeldSlot.Reference, of operation: AnyOperation, _ body: () -> Void) {
        var surroundings = Surroundings(own: slot.slot)
        surroundings.block = operation.numberForDumps
        $surroundings.withValue(surroundings) { HeldSlot.holding(slot, body) }
    }

    /// Calls `body`, which is unrelated to the code that runs here, except that it runs on the same stack.
    static func apart<Answer>(_ body: () -> Answer) -> Answer {
        haveSurroundings ? within(Surroundings(), body) : body()
    }

    /// Calls the block of an operation, or of a plain child of one, which is unrelated to the code that runs here,
    /// except that it runs on the same stack.
    static func apart<Answer>(of operation: Unmanaged<AnyOperation>, _ body: () -> Answer) -> Answer {
        guard haveSurroundings else { return body() }
        let number = operation._withUnsafeGuaranteedRef { $0.numberForDumps }
        return within(Surroundings(block: number), body)
    }

    private static func within<Answer>(_ those: Surroundings, _ body: () -> Answer) -> Answer {
        if those.isEmpty {
            return surroundings == nil ? body() : $surroundings.withValue(nil, operation: body)
        }
        return $surroundings.withValue(those, operation: body)
    }
}
