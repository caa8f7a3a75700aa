// OperationContext.swift - the task-local values that a block or a handler sees: those that were bound where it was
// passed to its operation, as with `Task { }`.
//
// If none is bound, which is checked at each such place and takes some nanoseconds, there is no context, and the
// operation stays plain. The default queue and the slots (Surroundings.swift) are task-local values, too, but not the
// user's: each block gets its own, within its context.

internal import CompositeOperationsBasics
@_spi(Faces) internal import Runs
public import Scheduling
internal import Synchronization

/// Copies of the values that were bound where it was created, for any number of calls.
final class OperationContext: Sendable {
    private let values: Values
    private let instance = Instance(.contexts)

    enum Values: Sendable {
        case known([any BoundValue])
        /// For a runtime that is not known.
        case ofTask(TaskCopies)
        /// The values of another context, and the trace of a root.
        case traced(OperationContext?, RunTrace)
    }

    init(_ values: Values) { self.values = values }

    /// The context of the calling code; nil: no user value is bound here, or `options` exclude user values. Under no
    /// lock.
    static func here(_ options: OperationOptions?) -> OperationContext? {
        guard (options?.context ?? COQueues.context) == .inherited, COQueues.haveValuesHere else {
            return nil
        }
        return OperationContext(COQueues.copiesHere.map { .known($0) } ?? .ofTask(TaskCopies()))
    }

    /// Calls `body`, which sees the values. Under no lock.
    func run(_ body: () -> Void) {
        switch values {
        case .known(let values): Self.bind(values[...], body)
        case .ofTask(let copies): copies.run(body)
        case .traced(let context?, let trace): context.run { trace.bind(body) }
        case .traced(nil, let trace): trace.bind(body)
        }
    }

    private static func bind(_ values: ArraySlice<any BoundValue>, _ body: () -> Void) {
        guard let first = values.first else { return body() }
        first.bind { bind(values.dropFirst(), body) }
    }

    /// Copies that the runtime makes for a task. Code that is run with them is part of that task, and isolated to no
    /// actor.
    final class TaskCopies: @unchecked Sendable {
        // Unchecked: `next` is under the lock.
        private let lock = WordLock()
        /// Can be run only once: so it first creates the next one, which copies its values.
        private var next = SynchronousTask()

        func run(_ body: () -> Void) {
            let key = UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
            lock.lock(key)
            let task = next
            task.run {
                next = SynchronousTask()
                lock.unlock(key)
                body()
            }
        }
    }

    /// A handler bound to this context, for a notice.
    func binding<Argument>(
        _ handler: @escaping @Sendable (Argument) -> Void
    ) -> @Sendable (Argument) -> Void {
        { argument in self.run { COQueues.apart { handler(argument) } } }
    }
}

extension COQueues {
    private static let areEmptyByDefault = Atomic(false)

    /// Which task-local values blocks and handlers see, unless ``OperationOptions/context`` of their operation decides:
    /// those that are bound where they are passed to the operation, which is the default, or none.
    ///
    /// This setting is read when they are passed to the operation.
    public static var context: Scheduler.Context {
        get { areEmptyByDefault.load(ordering: .relaxed) ? .empty : .inherited }
        set { areEmptyByDefault.store(newValue == .empty, ordering: .relaxed) }
    }

    /// Whether an operation without options that is given its block here has a context.
    static var giveContextHere: Bool { context == .inherited && haveValuesHere }

    /// Whether a user's task-local values may be bound where this is called.
    static var haveValuesHere: Bool { BoundValues.areHere && haveOthersThanOurs }

    @inline(never)
    private static var haveOthersThanOurs: Bool {
        BoundValues.allKeysHere { ours.contains($0) } != true
    }

    /// Copies of the user's values that are bound where this is called; nil: the runtime is not known.
    static var copiesHere: [any BoundValue]? { BoundValues.copies { ours.contains($0) } }

    private static let ours = OurKeys()

    /// For tests, which the testing library runs with its own values: the values that are bound here are not the
    /// user's, either.
    package static func disregardValuesHere() { _ = BoundValues.allKeysHere { ours.add($0) } }

    /// The keys of values that are not the user's.
    private final class OurKeys: @unchecked Sendable {
        // Unchecked: the keys below `count` do not change; `keys` grows under the lock.
        private let number = Guarded(0)
        private let count = Atomic(0)
        private let keys = UnsafeMutablePointer<UInt>.allocate(capacity: 32)

        init() {
            _ = add(BoundValues.address(of: $surroundings))
        }

        func contains(_ key: UInt) -> Bool {
            (0..<count.load(ordering: .acquiring)).contains { keys[$0] == key }
        }

        /// - Returns: true.
        func add(_ key: UInt) -> Bool {
            number.withLock { number in
                if number == 32 || contains(key) { return }
                keys[number] = key
                number += 1
                count.store(number, ordering: .releasing)
            }
            return true
        }
    }
}

extension AnyOperation {
    /// The context of a block, and of the closures with it, that are passed to the operation here. Under no lock.
    final var contextHere: OperationContext? {
        COQueues.haveValuesHere ? .here(look { extras?.options }) : nil
    }

    /// Sets the context. Under the lock, or before the operation is published.
    ///
    /// - Returns: the former context, to be released under no lock.
    final func setContext(_ context: OperationContext?) -> OperationContext? {
        if context == nil, extras?.context == nil { return nil }
        let extras = ensureExtras()
        defer { extras.context = context }
        return extras.context
    }
}
