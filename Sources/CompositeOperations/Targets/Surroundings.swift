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

    let queue: COOperationQueue
    let ticket: COOperationQueue.Ticket
    /// How many blocks of the operation had begun before this one.
    let runs: Int32
    /// The wait for a sync operation within it; nil: it is the block's own.
    var wait: Wait?

    /// A wait for a sync operation.
    final class Wait: Sendable {
        let isOver = Atomic(false)
    }

    /// Whether it has not been given back, and who has it waits still. Under no lock.
    var isHeld: Bool {
        wait?.isOver.load(ordering: .acquiring) != true && queue.isHeld(ticket, since: runs)
    }

    fileprivate func isSame(as other: HeldSlot) -> Bool { ticket === other.ticket && runs == other.runs }

    // MARK: Of a thread

    /// Of those that have not returned, the innermost last.
    private final class Stack {
        var slots: [HeldSlot] = []

        func push(_ slot: HeldSlot) { if !slots.contains(where: slot.isSame) { slots.append(slot) } }
    }

    private static let value = ThreadValue { stack in
        if let stack { Unmanaged<Stack>.fromOpaque(stack).release() }
    }

    private static var stack: Stack? {
        value.here.map { Unmanaged<Stack>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Those that are held on the stack of this thread.
    static var onThisThread: [HeldSlot] { stack?.slots ?? [] }

    /// Calls `body` with these held on the stack, beside those that are held below it: each is there once.
    ///
    /// - Parameters:
    ///   - callers: those of a sync operation's caller.
    ///   - own: the block's.
    static func holding(_ callers: HeldSlots, _ own: HeldSlot?, _ body: () -> Void) {
        if own == nil, callers.isEmpty { return body() }
        let stack = self.stack ?? makeStack()
        let count = stack.slots.count
        for slot in callers.onStack { stack.push(slot) }
        for slot in callers.ofBlock { stack.push(slot) }
        if let own { stack.push(own) }
        body()
        stack.slots.removeLast(stack.slots.count - count)
    }

    private static func makeStack() -> Stack {
        let made = Stack()
        value.set(Unmanaged.passRetained(made).toOpaque())
        return made
    }
}

/// The slots that are held for who calls.
struct HeldSlots {
    /// On the stack of the calling thread.
    var onStack: [HeldSlot] = []
    /// Of the block that calls, and of those who wait for it; also in a task of that block.
    var ofBlock: [HeldSlot] = []

    static var here: HeldSlots { HeldSlots(onStack: HeldSlot.onThisThread, ofBlock: COQueues.slots) }

    /// These, as the block of a sync operation has them, for which their holder waits.
    mutating func waits() {
        if ofBlock.isEmpty { return }
        let wait = HeldSlot.Wait()
        for index in ofBlock.indices { ofBlock[index].wait = wait }
    }

    /// The wait is over.
    func end() { ofBlock.first?.wait?.isOver.store(true, ordering: .releasing) }

    /// Whether one of a queue is. Under no lock.
    func contains(_ queue: COOperationQueue) -> Bool {
        (onStack + ofBlock).contains { $0.queue === queue && $0.isHeld }
    }

    var isEmpty: Bool { onStack.isEmpty && ofBlock.isEmpty }
}

/// What a block knows of where it runs: one object, which is bound while it is called.
class Surroundings: @unchecked Sendable {
    // Unchecked: it does not change.

    /// The default queue of that part of the program.
    var scope: COQueues.Scope? { around }
    private let around: COQueues.Scope?
    /// The slots of those who wait for the block.
    let callers: [HeldSlot]
    /// The block's own.
    let own: HeldSlot?

    init(_ scope: COQueues.Scope?, _ callers: [HeldSlot], _ own: HeldSlot?) {
        around = scope
        self.callers = callers
        self.own = own
    }

    /// These, with another default queue.
    func within(_ scope: COQueues.Scope) -> Surroundings {
        hasSlots ? Surroundings(scope, callers, own) : scope
    }

    var hasSlots: Bool { own != nil || !callers.isEmpty }
    var slots: [HeldSlot] { if let own { callers + [own] } else { callers } }
}

extension COQueues {
    /// Those of the block that runs here, or has made the task that does.
    @TaskLocal static var surroundings: Surroundings?

    /// The default queue of a part of the program.
    static var scoped: Scope? { surroundings?.scope }
    /// The slots of the block that runs here, or has made the task that does, and of those who wait for it.
    static var slots: [HeldSlot] { surroundings?.slots ?? [] }

    /// Calls a block of an operation.
    ///
    /// - Parameters:
    ///   - slot: its own.
    ///   - callers: those of a sync operation's caller.
    static func calling(
        in scope: Scope?, slot: HeldSlot?, callers: HeldSlots, _ context: OperationContext?,
        _ body: () -> Void
    ) {
        if !haveSurroundings, context == nil { return body() }
        HeldSlot.holding(callers, slot) {
            guard let context else { return within(scope, callers.ofBlock, slot, body) }
            context.run { within(scope, callers.ofBlock, slot, body) }
        }
    }

    /// Calls `body`, which is no part of what runs here, but for the stack.
    static func apart<Answer>(_ body: () -> Answer) -> Answer {
        haveSurroundings ? within(nil, [], nil, body) : body()
    }

    private static func within<Answer>(
        _ scope: Scope?, _ callers: [HeldSlot], _ own: HeldSlot?, _ body: () -> Answer
    ) -> Answer {
        if own == nil, callers.isEmpty {
            return surroundings === scope ? body() : $surroundings.withValue(scope, operation: body)
        }
        return $surroundings.withValue(Surroundings(scope, callers, own), operation: body)
    }
}
