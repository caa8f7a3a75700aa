// Dependencies.swift - operations that wait for the end of others.
//
// The other one may be in another tree: the locks of two trees are never held at once. What joins the two is an edge,
// which keeps neither of them alive: one that was started is held by the runtime until it ends. The count of unmet
// dependencies is raised before the other one knows of the edge, so that an end which comes meanwhile only lowers it
// again.
//
// Edges are added, and children that were made before are taken in, under one lock around those of the trees: so the
// search for cycles is exact.

internal import CompositeOperationsBasics
@_spi(Faces) internal import Runs
internal import Synchronization

/// One operation waits for another.
final class Dependency: Sendable {
    /// For which it waits.
    weak let other: AnyOperation?
    private weak let dependent: AnyOperation?
    private let over = Atomic(false)
    private let instance = Instance(.dependencies)

    init(of operation: AnyOperation, on other: AnyOperation) {
        self.other = other
        dependent = operation
    }

    /// The one that waits has been told, has ended, or has gone.
    var isOver: Bool { over.load(ordering: .relaxed) }

    /// - Returns: whether it was not over.
    @discardableResult
    func end() -> Bool { !over.exchange(true, ordering: .relaxed) }

    /// Ends it.
    ///
    /// - Returns: the operation that waits, and is to be told; nil: it need not be.
    func take() -> AnyOperation? { end() ? dependent : nil }
}

/// The dependents of an operation.
struct Dependents {
    private var edges: [Dependency] = []
    /// With so many of them, those that are over go.
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
    /// - Returns: who is to be told.
    mutating func take() -> [AnyOperation] {
        defer { self = Dependents() }
        return edges.compactMap { $0.take() }
    }
}

extension AnyOperation {
    // A number, which nobody reads: ThreadSanitizer takes an access to a value without a size for one to what is there.
    private static let edges = Guarded(0)

    /// Lets it wait, from its start, until `other` has ended, in whichever way; or has gone without having been started.
    ///
    /// - Returns: false, and nothing was done, when it is not ready, or when that would close a cycle: a composite waits for
    ///   its children, and a step of a cascade for the steps before it.
    /// - Complexity: O(1) while nobody waits for this one, and it is no child; else O(operations that `other` waits for, in
    ///   all), of which those that have ended count no more.
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

    /// Has a composite take in a child that was made before, unless one of them waits for the other.
    ///
    /// - Parameter body: takes it in.
    /// - Complexity: as of ``addDependency(_:)``; O(1) for a child without dependencies, for which nobody waits.
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

    /// A search for what an operation waits for. It is done under the lock of the edges; what it holds is released after
    /// that: it may be the last reference to an operation, and so to what is a user's.
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

    /// Whether a search can come upon it: as a dependency, a child, or a step before another one. Under the lock of the
    /// edges, under which it becomes either, but for a child that is new.
    private final var isAwaited: Bool {
        look { parentReference != nil || !(extras?.dependents.isEmpty ?? true) }
    }

    /// For whose end it waits, or may have to. Under the lock.
    private final var awaited: [AnyOperation] {
        if machine.isTerminal { return [] }
        var awaited = extras?.dependencies.compactMap(\.other) ?? []
        if let composition { awaited += composition.childrenLeft }
        switch machine.phase {
        // Operations that a round has ended may be done again.
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

    /// One of its dependencies was released, on any thread, and with any lock of a user's held.
    final func dependencyHasGone() {
        guard look({ dependencyIsMet() }) else { return }
        ExecutionWork.run(on: nil) { [self] in
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
