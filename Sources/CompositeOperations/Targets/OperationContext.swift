// OperationContext.swift - the task-local values that a block or a handler sees: those that were bound where it was given
// to its operation, as with `Task { }`.
//
// Where none is bound, which is asked at each such place and takes some nanoseconds, there is no context, and an operation
// is as plain as without. The default queue and the slots (Surroundings.swift) are task-local values, too, but none of the
// user's: each block is given its own, within its context.

internal import CompositeOperationsBasics
@_spi(Faces) internal import Runs
public import Scheduling
internal import Synchronization

/// Copies of the values that were bound where it was made, for any number of calls.
final class OperationContext: Sendable {
    private let values: Values
    private let instance = Instance(.contexts)

    enum Values: Sendable {
        case known([any BoundValue])
        /// Of a runtime of which nothing is known.
        case ofTask(TaskCopies)
        /// The values of another context, and the trace of a root.
        case traced(OperationContext?, RunTrace)
    }

    init(_ values: Values) { self.values = values }

    /// That of the code that asks; nil: no value of the user's is bound here, or `options` want none. Under no lock.
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

    /// Copies that the runtime makes: for a task. What it runs is a part of that task, and isolated to nobody.
    final class TaskCopies: @unchecked Sendable {
        // Unchecked: `next` is under the lock.
        private let lock = WordLock()
        /// Can be run once: so it makes the next one first, which copies its values.
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

    /// A handler, in this context, for a notice.
    func binding<Argument>(
        _ handler: @escaping @Sendable (Argument) -> Void
    ) -> @Sendable (Argument) -> Void {
        { argument in self.run { COQueues.apart { handler(argument) } } }
    }
}

extension COQueues {
    private static let areEmptyByDefault = Atomic(false)

    /// Which task-local values blocks and handlers see, unless ``OperationOptions/context`` of their operation says it: those
    /// that are bound where they are given to the operation, which is the default, or none.
    ///
    /// It is looked at when they are given to it.
    public static var context: Scheduler.Context {
        get { areEmptyByDefault.load(ordering: .relaxed) ? .empty : .inherited }
        set { areEmptyByDefault.store(newValue == .empty, ordering: .relaxed) }
    }

    /// Whether an operation without options that is given its block here has a context.
    static var giveContextHere: Bool { context == .inherited && haveValuesHere }

    /// Whether task-local values of the user's may be bound where this is called.
    static var haveValuesHere: Bool { BoundValues.areHere && haveOthersThanOurs }

    @inline(never)
    private static var haveOthersThanOurs: Bool {
        BoundValues.allKeysHere { ours.contains($0) } != true
    }

    /// Of the user's values that are bound where this is called; nil: nothing is known.
    static var copiesHere: [any BoundValue]? { BoundValues.copies { ours.contains($0) } }

    private static let ours = OurKeys()

    /// For tests, which the testing library runs with values of its own: what is bound here is none of the user's, either.
    package static func disregardValuesHere() { _ = BoundValues.allKeysHere { ours.add($0) } }

    /// Of values that are none of the user's.
    private final class OurKeys: @unchecked Sendable {
        // Unchecked: what is below `count` does not change; `keys` grows under the lock.
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
    /// The context of a block, and of what is given with it, that the operation is given here. Under no lock.
    final var contextHere: OperationContext? {
        COQueues.haveValuesHere ? .here(look { extras?.options }) : nil
    }

    /// Under the lock, or before anybody else knows the operation.
    ///
    /// - Returns: the one that it replaces, to be released under no lock.
    final func setContext(_ context: OperationContext?) -> OperationContext? {
        if context == nil, extras?.context == nil { return nil }
        let extras = ensureExtras()
        defer { extras.context = context }
        return extras.context
    }
}
