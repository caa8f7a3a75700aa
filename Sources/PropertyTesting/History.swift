// History: records calls while threads make them, for `isLinearizable`.
//
// Orderings:
//   P1  the time of a return (release) -> the time of a call (acquire): if the times say that one call returned
//       before another began, the first call happened before the other.

import CompositeOperationsBasics
import Synchronization

/// Records the concurrent calls that threads make on an object, and its answers, as the ``Call``s that
/// ``isLinearizable(_:from:step:)`` takes.
///
/// ```swift
/// let history = History<QueueOperation, Int?>(threads: 2, callsPerThread: 6)
/// _ = concurrently(2) { thread in
///     history.record(on: thread, .pop) { queue.pop() }
/// }
/// #expect(isLinearizable(history.calls, from: [], step: model))
/// ```
///
/// Recording perturbs little: a call costs two additions to one shared counter, and writes to the thread's own
/// memory, which is already mapped. But these additions order the calls that they separate (P1): calls that do not
/// overlap cannot test whether the object publishes the values that it passes on. Test that without a history.
public final class History<Operation: Sendable, Answer: Sendable>: @unchecked Sendable {
    // Unchecked: other threads read what a thread wrote only after it has ended, which is the caller's
    // responsibility.
    //
    // Neither a class for each thread nor an array of calls: unspecialised code asks the runtime for such types at
    // each call, which orders the threads in the eyes of ThreadSanitizer (so the test of P1 could not fail).
    private let operations: UnsafeMutablePointer<Operation>
    private let answers: UnsafeMutablePointer<Answer>
    private let times: UnsafeMutablePointer<(called: Int, returned: Int)>
    private let counts: UnsafeMutablePointer<Int>
    private let threads: Int
    private let callsPerThread: Int
    private let clock = Clock()

    /// Creates an empty history, with all the memory that it will ever need.
    public init(threads: Int, callsPerThread: Int) {
        demand(threads > 0 && callsPerThread > 0, "History: there must be at least one thread and one call")
        self.threads = threads
        self.callsPerThread = callsPerThread
        operations = allocateInPlace(threads * (callsPerThread + gap))
        answers = allocateInPlace(threads * (callsPerThread + gap))
        times = allocateInPlace(threads * (callsPerThread + gap))
        counts = .allocate(capacity: threads * gap)
        counts.initialize(repeating: 0, count: threads * gap)
    }

    deinit {
        for thread in 0..<threads {
            (operations + first(of: thread)).deinitialize(count: counts[thread * gap])
            (answers + first(of: thread)).deinitialize(count: counts[thread * gap])
        }
        operations.deallocate()
        answers.deallocate()
        times.deallocate()
        counts.deallocate()
    }

    private func first(of thread: Int) -> Int { thread * (callsPerThread + gap) }

    /// Makes a call, and records it.
    ///
    /// A body cannot throw, because every call needs an answer. Report a thrown error as an answer.
    ///
    /// - Parameter thread: the number of the thread, from 0; no two may use the same number at the same time.
    public func record(on thread: Int, _ operation: Operation, _ body: () -> Answer) -> Answer {
        let called = clock.timeOfCall()
        let answer = body()
        append(operation, answer, (called, clock.timeOfReturn()), on: thread)
        return answer
    }

    /// Makes a call that suspends, and records it; like the other `record`, with a task in place of a thread.
    public func record(
        on thread: Int, _ operation: Operation, isolation: isolated (any Actor)? = #isolation,
        _ body: () async -> Answer
    ) async -> Answer {
        let called = clock.timeOfCall()
        let answer = await body()
        append(operation, answer, (called, clock.timeOfReturn()), on: thread)
        return answer
    }

    private func append(
        _ operation: Operation, _ answer: Answer, _ time: (called: Int, returned: Int), on thread: Int
    ) {
        demand(thread >= 0 && thread < threads, "History: there is no thread with that number")
        let count = counts[thread * gap]
        demand(
            count < callsPerThread, "History: a thread made more calls than the history was created for")
        (operations + first(of: thread) + count).initialize(to: operation)
        (answers + first(of: thread) + count).initialize(to: answer)
        (times + first(of: thread) + count).initialize(to: time)
        counts[thread * gap] = count + 1
    }

    /// The calls of all threads, in the order in which they were called.
    ///
    /// - Precondition: all recording threads and tasks were joined, or are otherwise known to have ended.
    public var calls: [Call<Operation, Answer>] {
        (0..<threads).flatMap { thread in
            (first(of: thread)..<first(of: thread) + counts[thread * gap]).map { index in
                Call(
                    operations[index], answered: answers[index], called: times[index].called,
                    returned: times[index].returned)
            }
        }.sorted { $0.called < $1.called }
    }
}

/// The number of elements between those of two threads: with 8 bytes each, two cache lines, which many CPUs fetch
/// together.
private var gap: Int { 16 }

/// Allocates memory and writes to all of it, so its later use causes no page faults.
private func allocateInPlace<Element>(_ count: Int) -> UnsafeMutablePointer<Element> {
    let elements = UnsafeMutablePointer<Element>.allocate(capacity: count)
    UnsafeMutableRawPointer(elements).initializeMemory(
        as: UInt8.self, repeating: 0, count: count * MemoryLayout<Element>.stride)
    return elements
}

/// A clock for all threads; no two events have the same time.
private final class Clock: Sendable {
    private let time = Atomic(0)

    // P1, both halves. Relaxed times would be a total order too; but then, on a CPU that reorders, the effects of a
    // call could be seen outside its times, and a correct object be reported as faulty. Wrapping, because that is
    // one instruction; an addition with an overflow check is a loop.
    func timeOfCall() -> Int { time.wrappingAdd(1, ordering: .acquiring).oldValue }
    func timeOfReturn() -> Int { time.wrappingAdd(1, ordering: .releasing).oldValue }
}
