// BoundValues.swift - finds out whether a task-local value is bound, which no public interface of the runtime reports.
//
// The runtime keeps the bound values in a list. A task's list is in the task object; outside of tasks, a thread's list is in
// an object whose address is in a word of the thread. Neither offset is hard-coded here. Both are found once, by an experiment
// on a dedicated thread. A word is the head of the list if it meets three conditions. While no value is bound, it is 0. With
// one value bound, it is the address of an item that holds our first key, its type and its value. With two, it is the address
// of an item that holds the second key and links to the first item. (An item that links a child task's list to its parent's is
// recognized by its low bits.) Unless exactly one word of the task and one of the thread qualify, nothing is known, and the
// answer is always that values may be bound. Copies are then made needlessly.
//
// Later, only the thread that writes a list reads it, except for the items that child tasks share with their parent. These
// items outlive the children, and the runtime itself follows them at each lookup.

#if os(Linux) && compiler(>=6.3) && compiler(<6.4)
    internal import CBoundValues
    internal import Glibc
#endif

/// Whether task-local values are bound.
package enum BoundValues {
    #if os(Linux) && compiler(>=6.3) && compiler(<6.4)
        private static let places: bound_values_places? = Experiment.run()

        /// Whether the experiment has found both places.
        package static var areKnown: Bool { places != nil }

        /// Whether a task may be running here.
        package static var mayBeInTask: Bool { unsafe swift_task_getCurrent() != nil }

        /// The number of the task that runs here, unique while that task lives; nil: no task runs here.
        package static var task: UInt? { unsafe swift_task_getCurrent().map { UInt(bitPattern: $0) } }

        /// Whether values may be bound where this is called, in a task or outside of tasks.
        ///
        /// - Complexity: some 5 ns.
        package static var areHere: Bool {
            guard var places else { return true }
            return unsafe bound_values_value(bound_values_first(&places)) != nil
        }

        /// Where the values of the running code are, for repeated checks on its thread.
        @safe
        package struct Place {
            private var place: bound_values_here?

            /// The place for the code that runs here.
            package init() {
                guard var places else { return }
                unsafe place = bound_values_find(&places)
            }

            /// Whether no value is bound; false if that is unknown. Call only on the thread that created the place.
            package var isEmpty: Bool {
                mutating get { unsafe place != nil && bound_values_are_none(&place!) }
            }
        }

        /// Whether the keys of all values bound here (the addresses of `TaskLocal` objects) satisfy `condition`; nil: nothing
        /// is known.
        package static func allKeysHere(satisfy condition: (UInt) -> Bool) -> Bool? {
            guard var places else { return nil }
            var item = unsafe bound_values_value(bound_values_first(&places))
            while let value = unsafe item {
                if unsafe !condition(value.pointee.key) { return false }
                unsafe item = bound_values_below(value)
            }
            return true
        }

        /// Copies of the values bound here, except those whose keys satisfy `condition`; nil: nothing is known.
        package static func copies(butWhere condition: (UInt) -> Bool) -> [any BoundValue]? {
            var keys: [UInt] = []
            var copies: [any BoundValue] = []
            guard var places else { return nil }
            var item = unsafe bound_values_value(bound_values_first(&places))
            while let value = unsafe item {
                let key = unsafe value.pointee.key
                if !condition(key), !keys.contains(key) {  // else an inner binding shadows it
                    keys.append(key)
                    unsafe copies.append(copy(of: value))
                }
                unsafe item = bound_values_below(value)
            }
            return copies
        }

        private static func copy(of item: UnsafePointer<bound_values_item>) -> any BoundValue {
            func copy<Value: Sendable>(_ type: Value.Type) -> any BoundValue {
                let key = unsafe UnsafeRawPointer(bitPattern: item.pointee.key)!
                let mask = MemoryLayout<Value>.alignment - 1
                let offset = unsafe (MemoryLayout<bound_values_item>.size + mask) & ~mask
                let value = unsafe (UnsafeRawPointer(item) + offset).assumingMemoryBound(to: Value.self)
                return unsafe Binding(
                    key: Unmanaged<TaskLocal<Value>>.fromOpaque(key).takeUnretainedValue(),
                    value: value.pointee)
            }
            return copy(unsafe unsafeBitCast(item.pointee.type, to: (any Sendable.Type).self))
        }
    #else
        /// Copies of the values bound here; nil: nothing is known.
        package static func copies(butWhere condition: (UInt) -> Bool) -> [any BoundValue]? { nil }

        /// Whether the experiment has found both places.
        package static var areKnown: Bool { false }

        /// Whether a task may be running here.
        package static var mayBeInTask: Bool { true }

        /// The number of the task that runs here, unique while that task lives; nil: no task runs here.
        package static var task: UInt? {
            unsafe withUnsafeCurrentTask { unsafe $0.map { unsafe UInt(bitPattern: $0.hashValue) } }
        }

        /// Whether values may be bound where this is called, in a task or outside of tasks.
        package static var areHere: Bool { true }

        /// Whether the keys of all values bound here satisfy `condition`; nil: nothing is known.
        package static func allKeysHere(satisfy condition: (UInt) -> Bool) -> Bool? { nil }

        /// Where the values of the running code are; nothing is known.
        package struct Place {
            package init() {}
            package var isEmpty: Bool { false }
        }
    #endif

    /// The address of a key, as stored in the list.
    package static func address<Value>(of key: TaskLocal<Value>) -> UInt {
        unsafe UInt(bitPattern: Unmanaged.passUnretained(key).toOpaque())
    }
}

/// A copy of a task-local value, to be bound elsewhere.
package protocol BoundValue: Sendable {
    /// Calls `body` with the value bound.
    func bind(_ body: () -> Void)
}

private struct Binding<Value: Sendable>: BoundValue {
    let key: TaskLocal<Value>
    let value: Value

    func bind(_ body: () -> Void) { key.withValue(value, operation: body) }
}

#if os(Linux) && compiler(>=6.3) && compiler(<6.4)
    private enum Experiment {
        @TaskLocal static var first: UInt = 0
        @TaskLocal static var second: UInt = 0

        private final class Result: Sendable {
            // Sendable: the thread is joined before the result is read.
            nonisolated(unsafe) var places: bound_values_places?
        }

        /// - Returns: nil if nothing is known.
        static func run() -> bound_values_places? {
            let result = Result()
            var thread = pthread_t()
            let context = unsafe Unmanaged.passRetained(result).toOpaque()
            let code = unsafe pthread_create(
                &thread, nil,
                { context in
                    let result = unsafe Unmanaged<Result>.fromOpaque(context!).takeRetainedValue()
                    unsafe result.places = Experiment.find()
                    return nil
                }, context)
            guard code == 0 else {
                unsafe Unmanaged<Result>.fromOpaque(context).release()
                return nil
            }
            pthread_join(thread, nil)
            return unsafe result.places
        }

        private static func find() -> bound_values_places? {
            // Warm up, so whatever the runtime and the allocator create at a thread's first use exists before we look.
            $first.withValue(1) { $second.withValue(2) {} }
            var places = bound_values_places()
            nonisolated(unsafe) var (inTask, isa) = (-1, UInt(0))
            SynchronousTask.detached().run {
                guard let task = unsafe swift_task_getCurrent() else { return }
                unsafe isa = task.load(as: UInt.self)  // an address in the runtime's shared object
                if let probe = unsafe bound_values_probe_task() { unsafe inTask = offset(probe) }
            }
            guard
                unsafe inTask >= 0,
                let probe = unsafe bound_values_probe_thread(
                    UnsafeRawPointer(bitPattern: isa), &places.in_thread.0)
            else { return nil }
            let inThread = unsafe offset(probe)
            if inThread < 0 { return nil }
            unsafe places.in_task = Int(inTask)
            places.in_thread.1 = UInt(inThread)
            return places
        }

        private static func offset(_ probe: OpaquePointer) -> Int {
            let (one, two) = (BoundValues.address(of: $first), BoundValues.address(of: $second))
            unsafe bound_values_look(probe, 0)
            return $first.withValue(one) {
                unsafe bound_values_look(probe, 1)
                return $second.withValue(two) {
                    unsafe bound_values_look(probe, 2)
                    let type = unsafe unsafeBitCast(UInt.self as Any.Type, to: UnsafeRawPointer.self)
                    return unsafe bound_values_end(probe, one, two, type)
                }
            }
        }
    }
#endif
