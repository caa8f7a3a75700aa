// Surroundings.swift - what a block of an operation knows of where it runs: the default queue in force, and the slots
// that are held for it.
//
// The default queue and the block's own slot are task-local values, so that a task which the block makes has them, too. A
// thread that waits may run others' blocks meanwhile, nested on its stack: these are none of their business. So both
// are bound for each block, to nil as well.
//
// The slots that are held on a thread's stack are that thread's (`HeldSlot.onThisThread`): by blocks that have not
// returned, and by the callers of a sync operation, wherever they wait. None of these can go on before what runs above
// it has returned: who asks for such a slot there would wait for ever.

internal import Glibc

/// A slot that a queue has given to a block.
struct HeldSlot: @unchecked Sendable {
    // Unchecked: the queue looks at the ticket under its lock.

    let queue: COOperationQueue
    let ticket: COOperationQueue.Ticket
    /// How many blocks of the operation had begun before this one.
    let runs: Int32

    /// Whether it has not been given back. Under no lock.
    var isHeld: Bool { queue.isHeld(ticket, since: runs) }

    // MARK: Of a thread

    /// Of those that have not returned, the innermost last.
    private final class Stack {
        var slots: [HeldSlot] = []
    }

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        let code = pthread_key_create(&key) { stack in
            if let stack { Unmanaged<Stack>.fromOpaque(stack).release() }
        }
        guard code == 0 else { fatalError("no key is left for values of a thread") }
        return key
    }()

    private static var stack: Stack? {
        pthread_getspecific(key).map { Unmanaged<Stack>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Those that are held on the stack of this thread.
    static var onThisThread: [HeldSlot] { stack?.slots ?? [] }

    /// Calls `body` with these held on the stack, beside those that are held below it.
    static func holding(_ slots: [HeldSlot], _ body: () -> Void) {
        if slots.isEmpty { return body() }
        let stack = self.stack ?? makeStack()
        stack.slots += slots
        body()
        stack.slots.removeLast(slots.count)
    }

    private static func makeStack() -> Stack {
        let made = Stack()
        pthread_setspecific(key, Unmanaged.passRetained(made).toOpaque())
        return made
    }
}

extension COQueues {
    /// The default queue of a part of the program.
    @TaskLocal static var scoped: Scope?
    /// The slot of the block that runs here, or has made the task that does.
    @TaskLocal static var slot: HeldSlot?

    /// Those that are held for who runs here.
    static var heldSlots: [HeldSlot] { HeldSlot.onThisThread + [slot].compactMap(\.self) }

    /// Calls a block of an operation.
    ///
    /// - Parameters:
    ///   - slot: its own.
    ///   - callers: those of a sync operation's callers.
    static func calling(
        in scope: Scope?, slot: HeldSlot?, callers: [HeldSlot], _ body: () -> Void
    ) {
        HeldSlot.holding(callers + [slot].compactMap(\.self)) { within(scope, slot, body) }
    }

    /// Calls `body`, which is no part of what runs here, but for the stack.
    static func apart<Answer>(_ body: () -> Answer) -> Answer { within(nil, nil, body) }

    private static func within<Answer>(
        _ scope: Scope?, _ slot: HeldSlot?, _ body: () -> Answer
    ) -> Answer {
        if slot == nil && self.slot == nil {
            return scoped === scope ? body() : $scoped.withValue(scope, operation: body)
        }
        return $slot.withValue(slot) { $scoped.withValue(scope, operation: body) }
    }
}
