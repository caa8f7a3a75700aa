// Dependencies.swift - operations that wait for the end of others.
//
// The other one may be in another tree. No two locks are held: the count of unmet dependencies is raised first, so
// that an end which comes meanwhile only lowers it again. Edges are added under one lock of their own, which makes
// the search for cycles exact.

extension AnyOperation {
    // A number, which nobody reads: ThreadSanitizer takes an access to a value without a size for one to what is there.
    private static let edges = Guarded(0)

    /// Lets it wait, from its start, until `other` has ended, in whichever way; or has gone without having been started.
    ///
    /// - Returns: false, and nothing was done, when it is not ready, or when that would close a cycle.
    /// - Complexity: O(operations that `other` waits for, in all), of which those that have ended count no more.
    @discardableResult
    public final func addDependency(_ other: AnyOperation) -> Bool {
        let isAdded = Self.edges.withLock { _ in
            if other.waits(for: self) { return false }
            return look {
                guard machine.phase == .ready else { return false }
                let extras = ensureExtras()
                extras.unmetDependencies += 1
                extras.dependencies.append(WeakOperation(other))
                return true
            }
        }
        guard isAdded else {
            return change { effects in
                refuse("addDependency(_:) of an operation that is not ready, or waits for this one", &effects)
            }
        }
        let hasEnded = other.look {
            if other.machine.isTerminal { return true }
            other.ensureExtras().dependents.append(self)
            return false
        }
        if hasEnded { dependencyEnded() }
        return true
    }

    /// Whether it is `other`, or waits for it, directly or not; being around something is to wait for it, too. Under
    /// the lock of the edges.
    private final func waits(for other: AnyOperation) -> Bool {
        var seen: Set<ObjectIdentifier> = []
        var walk = [self]
        while let operation = walk.popLast() {
            if operation === other { return true }
            guard seen.insert(ObjectIdentifier(operation)).inserted else { continue }
            let (next, children) = operation.look {
                guard !operation.machine.isTerminal else { return ([AnyOperation](), [AnyOperation]()) }
                let next = operation.extras?.dependencies.compactMap(\.operation) ?? []
                return (next, Array(operation.composition?.children ?? []))
            }
            walk += next + children
        }
        return false
    }

    /// One of those that it waits for has ended. Under no lock.
    final func dependencyEnded() { change { effects in if dependencyIsMet() { becameDue(&effects) } } }

    /// One of those that it waits for has gone, on whatever thread, and with whatever lock of a user's held.
    final func dependencyHasGone() {
        guard look({ dependencyIsMet() }) else { return }
        COQueues.run(on: nil) { [self] in
            change { effects in if machine.phase == .queued { becameDue(&effects) } }
        }
    }

    /// Under the lock.
    ///
    /// - Returns: whether it waits for its turn, and for no other one any more.
    private final func dependencyIsMet() -> Bool {
        guard let extras else { return false }
        extras.unmetDependencies -= 1
        guard extras.unmetDependencies == 0 else { return false }
        extras.dependencies = []
        return machine.phase == .queued
    }
}

/// An operation that is not kept alive.
struct WeakOperation {
    weak let operation: AnyOperation?
    init(_ operation: AnyOperation) { self.operation = operation }
}
