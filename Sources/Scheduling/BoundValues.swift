// BoundValues.swift - whether a task-local value is bound here: a question that the runtime does not answer in public.
//
// It keeps the bound values in a list: that of a task in the task object, that of a thread outside of tasks in an object
// whose address is in a word of the thread. No place is written down here. Both are found by an experiment, once, on a
// thread that nobody else has: a word is the head of the list if it is 0 without a value, the address of an item that
// names our first key with one, and with two that of an item that names the second key and leads to the first. Unless
// exactly one word of each does, nothing is known, and the answer is always that there may be values: then copies are
// made that nobody needs.
//
// What is read later is read by the thread that writes it, but for the items that child tasks share with their parent:
// these stay as long as the children do, and the runtime itself follows them for each value.

#if os(Linux) && compiler(>=6.3) && compiler(<6.4)
    internal import CBoundValues
    internal import Glibc
#endif

/// Whether task-local values are bound.
package enum BoundValues {
    #if os(Linux) && compiler(>=6.3) && compiler(<6.4)
        private static let places: bound_values_places? = Experiment.run()

        /// Whether the experiment has found what it looks for.
        package static var areKnown: Bool { places != nil }

        /// Whether values may be bound where this is called, in a task or outside of tasks.
        ///
        /// - Complexity: some 5 ns where none is; O(values) else.
        package static var areHere: Bool { mayBeHere(but: 0, nor: 0) }

        /// As ``areHere``, but for the values of two keys: the addresses of `TaskLocal` objects.
        package static func mayBeHere(but first: UInt, nor second: UInt) -> Bool {
            guard var places else { return true }
            return unsafe bound_values_any(&places, first, second)
        }
    #else
        /// Whether the experiment has found what it looks for.
        package static var areKnown: Bool { false }

        /// Whether values may be bound where this is called, in a task or outside of tasks.
        package static var areHere: Bool { true }

        /// As ``areHere``, but for the values of two keys: the addresses of `TaskLocal` objects.
        package static func mayBeHere(but first: UInt, nor second: UInt) -> Bool { true }
    #endif

    /// What a key is in the list.
    package static func address<Value>(of key: TaskLocal<Value>) -> UInt {
        unsafe UInt(bitPattern: Unmanaged.passUnretained(key).toOpaque())
    }
}

#if os(Linux) && compiler(>=6.3) && compiler(<6.4)
    private enum Experiment {
        @TaskLocal static var first = 0
        @TaskLocal static var second = 0

        private final class Result: Sendable {
            // Sendable: the thread is joined before it is read.
            nonisolated(unsafe) var places: bound_values_places?
        }

        /// - Returns: nil: nothing is known.
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
            // What the runtime and the allocator make at the first use of a thread is there before we look.
            $first.withValue(1) { $second.withValue(2) {} }
            var places = bound_values_places()
            nonisolated(unsafe) var (inTask, isa) = (-1, UInt(0))
            SynchronousTask.detached().run {
                guard let task = unsafe swift_task_getCurrent() else { return }
                unsafe isa = task.load(as: UInt.self)  // of the runtime's own memory
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
            unsafe bound_values_look(probe, 0)
            return $first.withValue(1) {
                unsafe bound_values_look(probe, 1)
                return $second.withValue(2) {
                    unsafe bound_values_look(probe, 2)
                    return unsafe bound_values_end(
                        probe, BoundValues.address(of: $first), BoundValues.address(of: $second))
                }
            }
        }
    }
#endif
