// Dependencies.swift - operations that wait for the end of others.
//
// The two operations may be in different trees, and the locks of two trees are never held at once. An edge joins the
// two, and keeps neither of them alive: an operation that was started is held by the runtime until it ends. The count
// of unmet dependencies is incremented before the edge is added to the other operation, so that an end in between only
// decrements it again.
//
// Edges are added, and existing operations become children, under one lock, which is taken before those of the trees:
// so the search for cycles is exact.

internal import CompositeOperationsBasics
@_spi(Faces) internal import Runs
internal import Synchronization

/// One operation waits for another.
final class Dependency: Sendable {
    /// The operation that is waited for.
    weak let other: AnyOperation?
    private weak let dependent: AnyOperation?
    private let over = Atomic(false)
    private let instance = Instance(.dependencies)

    init(of operation: AnyOperation, on other: AnyOperation) {
        self.other = other
        dependent = operation
    }

    /// The dependent has been notified, has ended, or has been deallocated.
    var isOver: Bool { over.load(ordering: .relaxed) }

    /// - Returns: whether it was not over.
    @discardableResult
    func end() -> Bool { !over.exchange(true, ordering: .relaxed) }

    /// Ends it.
    ///
    /// - Returns: the dependent, which has to be notified; nil: it need not be.
    func take() -> AnyOperation? { end() ? dependent : nil }
}

/// The dependents of an operation.
struct Dependents {
    private var edges: [Dependency] = []
    /// At this many edges, those that are over are removed.
    private var most = 8

    var isEmpty: Bool { edges.isEmpty }

    mutating func append(_ edge: Dependency) {
        if edges.count >= most {
            edges.removeAll(where: \.isOver)
            most = max(8, 2 * edges.count)
        }
        edges.append(edge)
    }

    /// Ends all of them.
    ///
    /// - Returns: the operations to be notified.
    mutating func take() -> [AnyOperation] {
        defer { self = Dependents() }
        return edges.compactMap { $0.take() }
    }
}

extension AnyOperation {
    // A number that is never read: ThreadSanitizer mistakes an access to a zero-sized value for one to whatever is at
    // that address.
    private static let edges = Guarded(0)

    /// Makes it wait, from its start, until `other` has ended, in any way, or has been deallocated without having been
    /// started.
    ///
    /// - Returns: false, with no effect, when it is not ready, or when that would close a cycle: a composite waits for
    ///   its children, and a step of a cascade for the steps before it.
    /// - Complexity: O(1) while no operation waits for this one, and it is not a child; else O(operations that `other`
    ///   waits for, directly or not), except those that have ended.
    @discardableResult
    public final func addDependency(_ other: AnyOperation) -> Bool {
        var walk = Walk()
        let edge = Self.edges.withLock { _ -> Dependency? in
            if isAwaited || other === self, walk.finds(self, from: other) { return nil }
            let edge = look { () -> Dependency? in
                guard machine.phase == .ready else { return nil }
                let edge = Dependency(of: self, on: other)
                let extras = ensureExtras()
                extras.unmetDependencies += 1
                extras.dependencies.append(edge)
                return edge
            }
            guard let edge else { return nil }
            other.look { if !other.machine.isTerminal { other.ensureExtras().dependents.append(edge) } }
            return edge
        }
        withExtendedLifetime(walk) {}
        guard let edge else {
            return change { effects in
                refuse("addDependency(_:) of an operation that is not ready, or waits for this one", &effects)
            }
        }
        if other.isEnded, edge.end() { dependencyEnded() }
        return true
    }

    /// Makes an existing operation a child of a composite, unless one of them waits for the other.
    ///
    /// - Parameter body: adds the child.
    /// - Complexity: that of ``addDependency(_:)``; O(1) for a child without dependencies or dependents.
    static func joining(
        _ child: AnyOperation, to composite: AnyOperation, _ body: () -> RegistrationError?
    ) -> RegistrationError? {
        var walk = Walk()
        let refusal = edges.withLock { _ -> RegistrationError? in
            let (waits, isAwaited) = child.look {
                (!(child.extras?.dependencies.isEmpty ?? true), !(child.extras?.dependents.isEmpty ?? true))
            }
            if waits, walk.finds(composite, from: child) { return RegistrationError.wouldWaitForItself }
            let former =
                isAwaited ? composite.look { composite.composition?.unfinished(before: .max) } : nil
            if let former, walk.finds(child, from: former) { return RegistrationError.wouldWaitForItself }
            return body()
        }
        withExtendedLifetime(walk) {}
        return refusal
    }

    /// A search for the operations that an operation waits for. Done under the lock of the edges. The references that
    /// it holds are released after that: one may be the last reference to an operation, and so to user objects.
    private struct Walk {
        private var held: [AnyOperation] = []

        /// Whether `start` is `goal`, or waits for it, directly or not.
        mutating func finds(_ goal: AnyOperation, from start: AnyOperation) -> Bool {
            var seen: Set<ObjectIdentifier> = []
            var next = held.count
            held.append(start)
            while next < held.count {
                let operation = held[next]
                next += 1
                if operation === goal { return true }
                guard seen.insert(ObjectIdentifier(operation)).inserted else { continue }
                held += operation.look { operation.awaited }
            }
            return false
        }
    }

    /// Whether a search can reach it: as a dependency, a child, or a step before another one. Under the lock of the
    /// edges, under which an operation becomes one of these, unless it is created as a child.
    private final var isAwaited: Bool {
        look { parentReference != nil || !(extras?.dependents.isEmpty ?? true) }
    }

    /// The operations whose end it waits for, or may have to wait for. Under the lock.
    private final var awaited: [AnyOperation] {
        if machine.isTerminal { return [] }
        var awaited = extras?.dependencies.compactMap(\.other) ?? []
        if let composition { awaited += composition.childrenLeft }
        switch machine.phase {
        // Operations that a round has ended may be redone.
        case .ready, .delayed, .ending:
            if !isDropped, let former = parent?.composition?.unfinished(before: Int(index)) {
                awaited.append(former)
            }
        default: break
        }
        return awaited
    }

    /// One of its dependencies has ended. Under no lock.
    final func dependencyEnded() { change { effects in if dependencyIsMet() { becameDue(&effects) } } }

    /// One of its dependencies was deallocated, on any thread, and possibly while a user's lock is held.
    final func dependencyHasGone() {
        guard look({ dependencyIsMet() }) else { return }
        ExecutionWork.run(on: nil) { [self] in
            change { effects in if machine.phase == .queued { becameDue(&effects) } }
        }
    }

    /// Under the lock.
    ///
    /// - Returns: whether it waits for its turn, and no longer for another operation.
    private final func dependencyIsMet() -> Bool {
        guard let extras else { return false }
        extras.unmetDependencies -= 1
        guard extras.unmetDependencies == 0 else { return false }
        extras.dependencies = []
        return machine.phase == .queued
    }
}
