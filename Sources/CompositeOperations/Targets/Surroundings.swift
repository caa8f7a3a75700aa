// Surroundings.swift - what a block of an operation knows of where it runs: the default queue in force, and the slots
// that are held for it.
//
// The default queue, and the slots of the block and of those who wait for it, are a task-local value, so that a task which
// the block makes has them, too. A thread that waits may run others' blocks meanwhile, nested on its stack: these are none
// of their business. So the value is bound for each block, also where there is none.
//
// The slots that are held on a thread's stack are that thread's (`HeldSlot.onThisThread`): by blocks that have not
// returned, and by the callers of a sync operation, wherever they wait. None of these can go on before what runs above
// it has returned: who asks for such a slot there would wait for ever.

internal import Runs
internal import Synchronization

/// A slot that a queue has given to a block.
struct HeldSlot: @unchecked Sendable {
    // Unchecked: the queue looks at the ticket under its lock.

    /// Names its queue, and does not hold it: where that is gone, nobody asks for a slot of it.
    let ticket: COOperationQueue.Ticket
    /// How many blocks of the operation had begun before this one.
    let runs: Int32
    /// The wait for a sync operation within it; nil: it is the block's own.
    var wait: Wait?

    /// A wait for a sync operation.
    final class Wait: Sendable {
        let isOver = Atomic(false)
    }

    /// Whether it is one of a queue's, has not been given back, and who has it waits still. Under no lock.
    func isHeld(of queue: COOperationQueue) -> Bool {
        ticket.isOf(queue) && wait?.isOver.load(ordering: .acquiring) != true
            && queue.isHeld(ticket, since: runs)
    }

    /// The identity of surroundings.
    private struct Key: Hashable {
        let ticket: ObjectIdentifier
        let runs: Int32
    }

    private var key: Key { Key(ticket: ObjectIdentifier(ticket), runs: runs) }

    /// As the operation holds it, while its block is out.
    struct Reference {
        let ticket: Unmanaged<COOperationQueue.Ticket>
        let runs: Int32

        var slot: HeldSlot { HeldSlot(ticket: ticket.takeUnretainedValue(), runs: runs) }
    }

    // MARK: Of a thread

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

    /// The slots that are held on the stack of this thread, the innermost last. Each is there once: a block has its slot in one frame, and
    /// callers bring those that are not there.
    ///
    /// - Complexity: O(these).
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

    /// Calls `body` with these held on the stack, beside those that are held below it.
    ///
    /// - Parameters:
    ///   - callers: those on the stack of a sync operation's caller, and of the block that called.
    ///   - own: the block's.
    /// - Complexity: O(all of them).
    fileprivate static func holding(_ callers: HeldSlots, _ own: Reference?, _ body: () -> Void) {
        if own == nil, callers.isEmpty { return body() }
        var known: Set<Key> = []
        if !callers.isEmpty { for slot in onThisThread { known.insert(slot.key) } }
        let others = (callers.onStack + callers.ofBlock).filter { known.insert($0.key).inserted }
        others.withUnsafeBufferPointer { others in
            push(Frame(own: own, callers: others, below: innermost), body)
        }
    }

    /// As above.
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
    /// Of the block that calls, and of those who wait for it; also in a task of that block.
    var ofBlock: [HeldSlot] = []

    static var here: HeldSlots { HeldSlots(onStack: HeldSlot.onThisThread, ofBlock: COQueues.slots) }

    /// Notes that the block of a sync operation has these slots, for which their holder waits.
    mutating func waits() {
        if ofBlock.isEmpty { return }
        let wait = HeldSlot.Wait()
        for index in ofBlock.indices { ofBlock[index].wait = wait }
    }

    /// The wait is over.
    func end() { ofBlock.first?.wait?.isOver.store(true, ordering: .releasing) }

    /// Whether one of a queue is. Under no lock.
    func contains(_ queue: COOperationQueue) -> Bool {
        (onStack + ofBlock).contains { $0.isHeld(of: queue) }
    }

    var isEmpty: Bool { onStack.isEmpty && ofBlock.isEmpty }
}

/// A block's knowledge of where it runs, bound while it is called.
struct Surroundings {
    /// The default queue of that part of the program.
    var scope: COQueues.Scope?
    /// The slots of those who wait for the block.
    var callers: [HeldSlot] = []
    /// The block's own.
    var own: HeldSlot?
    /// While somebody inspects: the number of the operation whose block it is; of a plain child, of its composite. 0: none.
    var block: UInt64 = 0

    var isEmpty: Bool { scope == nil && own == nil && callers.isEmpty && block == 0 }
    var slots: [HeldSlot] { if let own { callers + [own] } else { callers } }
}

extension COQueues {
    /// The surroundings of the block that runs here, or that made the task that does.
    @TaskLocal static var surroundings: Surroundings?

    /// The default queue of a part of the program.
    static var scoped: Scope? { surroundings?.scope }
    /// The slots of the block that runs here, or has made the task that does, and of those who wait for it.
    static var slots: [HeldSlot] { surroundings?.slots ?? [] }

    /// Calls a block of an operation.
    ///
    /// - Parameters:
    ///   - scope: where the operation was made.
    ///   - callers: those of a sync operation's caller.
    ///   - slot: its own.
    ///   - operation: whose block it is.
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

    /// Calls the block of an operation that has nothing but a slot.
    @inline(__always)
    static func calling(_ slot: HeldSlot.Reference, of operation: AnyOperation, _ body: () -> Void) {
        var surroundings = Surroundings(own: slot.slot)
        surroundings.block = operation.numberForDumps
        $surroundings.withValue(surroundings) { HeldSlot.holding(slot, body) }
    }

    /// Calls `body`, which is no part of what runs here, but for the stack.
    static func apart<Answer>(_ body: () -> Answer) -> Answer {
        haveSurroundings ? within(Surroundings(), body) : body()
    }

    /// Calls the block of an operation, or of a plain child of one, which is no part of what runs here, but for the stack.
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
