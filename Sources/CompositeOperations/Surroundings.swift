// Surroundings.swift - what a block of an operation knows of where it runs: the default queue in force, and the slots
// that are held for it. Task-local values, bound around the block.
//
// A thread that waits may run others' blocks meanwhile, nested on its stack. The default queue is none of their
// business: it is bound for each block, to nil too. Slots are: the one that waits cannot go on before they have
// returned, so who asks for its slot there would wait for ever. A slot that was given back since does not count.

/// The slots that are held by the block that runs here, and by those that wait for it.
struct HeldSlots: @unchecked Sendable {
    // Unchecked: a ticket is looked at by its queue, under the queue's lock.

    let queue: COOperationQueue
    let ticket: COOperationQueue.Ticket
    /// How many blocks of the operation had begun before this one.
    let runs: Int32
    /// Of those that wait.
    let outer: Outer?

    final class Outer: Sendable {
        let slots: HeldSlots
        init(_ slots: HeldSlots) { self.slots = slots }
    }

    /// Whether there is one of that queue, and it is still held. Under no lock.
    ///
    /// - Complexity: O(blocks that wait for each other here, in queues).
    func contain(_ queue: COOperationQueue) -> Bool {
        var next: HeldSlots? = self
        while let slots = next {
            if slots.queue === queue, queue.isHeld(slots.ticket, since: slots.runs) { return true }
            next = slots.outer?.slots
        }
        return false
    }
}

extension COQueues {
    /// The default queue of a part of the program.
    @TaskLocal static var scoped: Scope?
    /// The slots that are held for the block that runs here.
    @TaskLocal static var slots: HeldSlots?

    /// Calls `body` with that default queue for a part of the program, or none, whatever is in force here.
    static func within<Answer>(_ scope: Scope?, _ body: () -> Answer) -> Answer {
        scoped === scope ? body() : $scoped.withValue(scope, operation: body)
    }

    /// As ``within(_:_:)``, with slots beside it; nil: those that are in force here.
    static func within(_ scope: Scope?, holding slots: HeldSlots?, _ body: () -> Void) {
        guard let slots else { return within(scope, body) }
        $slots.withValue(slots) { within(scope, body) }
    }
}
