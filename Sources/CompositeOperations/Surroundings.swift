// Surroundings.swift - what a block of an operation knows of where it runs: the default queue in force, and the slots
// that are held for it. Task-local values, bound around the block.
//
// A thread that waits may run others' blocks meanwhile, nested on its stack. These know nothing of the one that waits
// (`apart`).

/// The queues that have given their slots to the block that runs here, and to those that wait for it.
struct HeldSlots: Sendable {
    /// Of the block itself.
    let queue: COOperationQueue
    /// Of those that wait for it.
    let outer: Outer?

    final class Outer: Sendable {
        let slots: HeldSlots
        init(_ slots: HeldSlots) { self.slots = slots }
    }

    /// - Complexity: O(sync operations that wait for each other here, in other queues).
    func contain(_ queue: COOperationQueue) -> Bool {
        var slots = self
        while slots.queue !== queue {
            guard let outer = slots.outer else { return false }
            slots = outer.slots
        }
        return true
    }
}

extension COQueues {
    /// The default queue of a part of the program.
    @TaskLocal static var scoped: Scope?
    /// The slots that are held for the block that runs here.
    @TaskLocal static var slots: HeldSlots?

    /// Calls `body` as a block of an operation.
    ///
    /// - Parameters:
    ///   - admission: has given it a slot.
    ///   - callers: those of whoever waits for the operation.
    @inline(__always)
    static func within(
        _ scope: Scope?, admission: COOperationQueue?, callers: HeldSlots.Outer?, _ body: () -> Void
    ) {
        let held = admission.map { HeldSlots(queue: $0, outer: callers) } ?? callers?.slots
        switch (held, scope) {
        case (nil, nil): body()
        case (let held?, nil): $slots.withValue(held, operation: body)
        case (nil, let scope?): $scoped.withValue(scope, operation: body)
        case (let held?, let scope?):
            $slots.withValue(held) { $scoped.withValue(scope, operation: body) }
        }
    }

    /// Calls `body`, which may run others' blocks, with nothing of what is in force here.
    static func apart<Answer>(_ body: () -> Answer) -> Answer {
        if slots == nil && scoped == nil { return body() }
        return $slots.withValue(nil) { $scoped.withValue(nil, operation: body) }
    }
}
