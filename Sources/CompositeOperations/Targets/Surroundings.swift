// Surroundings.swift - what a block of an operation knows of where it runs: the default queue in force, and the slots
// that are held for it.
//
// The default queue, and the slots of the block and of those who wait for it, are task-local values, so that a task which
// the block makes has them, too. A thread that waits may run others' blocks meanwhile, nested on its stack: these are none
// of their business. So both are bound for each block, also where there are none.
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

    private func isSame(as other: HeldSlot) -> Bool { ticket === other.ticket && runs == other.runs }

    // MARK: Of a thread

    /// Of those that have not returned, the innermost last.
    private final class Stack {
        var slots: [HeldSlot] = []
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
    static func holding(_ slots: [HeldSlot], _ body: () -> Void) {
        if slots.isEmpty { return body() }
        let stack = self.stack ?? makeStack()
        let new = slots.filter { slot in !stack.slots.contains(where: slot.isSame) }
        stack.slots += new
        body()
        stack.slots.removeLast(new.count)
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

extension COQueues {
    /// The default queue of a part of the program.
    @TaskLocal static var scoped: Scope?
    /// The slots of the block that runs here, or has made the task that does, and of those who wait for it.
    @TaskLocal static var slots: [HeldSlot] = []

    /// Calls a block of an operation.
    ///
    /// - Parameters:
    ///   - slot: its own.
    ///   - callers: those of a sync operation's caller.
    static func calling(
        in scope: Scope?, slot: HeldSlot?, callers: HeldSlots, _ context: OperationContext?,
        _ body: () -> Void
    ) {
        let slots = callers.ofBlock + [slot].compactMap(\.self)
        HeldSlot.holding(callers.onStack + slots) {
            guard let context else { return within(scope, slots, body) }
            context.run { within(scope, slots, body) }
        }
    }

    /// Calls `body`, which is no part of what runs here, but for the stack.
    static func apart<Answer>(_ body: () -> Answer) -> Answer { within(nil, [], body) }

    private static func within<Answer>(
        _ scope: Scope?, _ slots: [HeldSlot], _ body: () -> Answer
    ) -> Answer {
        if slots.isEmpty && self.slots.isEmpty {
            return scoped === scope ? body() : $scoped.withValue(scope, operation: body)
        }
        return $slots.withValue(slots) { $scoped.withValue(scope, operation: body) }
    }
}
