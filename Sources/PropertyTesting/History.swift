// History: records calls while threads make them, and hands them to `isLinearizable`.
//
// Orderings:
//   P1  the time of a return (release) -> the time of a call (acquire): when one call returned before another
//       was called, by the times, then it happened before the other.

import CompositeOperationsBasics
import Synchronization

/// Records what some threads ask of an object at the same time, and what it answers, as the ``Call``s that
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
/// To record perturbs little: a call costs two additions to one counter, and writes to memory of the thread's own,
/// which is there and in place before. But those additions order what they separate (P1): calls that do not overlap
/// are no test of whether the object publishes what it hands over. Ask that without a history.
public final class History<Operation: Sendable, Answer: Sendable>: @unchecked Sendable {
    // Unchecked: what a thread writes is read by others when it has ended, which the caller sees to.
    //
    // Not a class for each thread, nor an array of calls: code that is not specialised asks the runtime for such
    // types at each call, and orders the threads thereby, as ThreadSanitizer sees it (P1's test failed to fail).
    private let operations: UnsafeMutablePointer<Operation>
    private let answers: UnsafeMutablePointer<Answer>
    private let times: UnsafeMutablePointer<(called: Int, returned: Int)>
    private let counts: UnsafeMutablePointer<Int>
    private let threads: Int
    private let callsPerThread: Int
    private let clock = Clock()

    /// Creates an empty history, with the memory that it is ever going to need.
    public init(threads: Int, callsPerThread: Int) {
        demand(threads > 0 && callsPerThread > 0, "History: there must be a thread, and a call")
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
    /// A body cannot throw, because every call needs its answer: that it threw an error is one.
    ///
    /// - Parameter thread: the number of the thread, from 0; no two may use the same number at the same time.
    public func record(on thread: Int, _ operation: Operation, _ body: () -> Answer) -> Answer {
        let called = clock.timeOfCall()
        let answer = body()
        append(operation, answer, (called, clock.timeOfReturn()), on: thread)
        return answer
    }

    /// Makes a call that suspends, and records it; as the other `record`, with a task for a thread.
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
    /// - Precondition: what records was joined, or is otherwise known to have ended.
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

/// So many elements between those of two threads that, when they take 8 bytes each, they are two lines of the
/// cache apart, which many CPUs fetch together.
private var gap: Int { 16 }

/// Memory that was written to once, so that the kernel has no page to find when it is used.
private func allocateInPlace<Element>(_ count: Int) -> UnsafeMutablePointer<Element> {
    let elements = UnsafeMutablePointer<Element>.allocate(capacity: count)
    UnsafeMutableRawPointer(elements).initializeMemory(
        as: UInt8.self, repeating: 0, count: count * MemoryLayout<Element>.stride)
    return elements
}

/// One time for all threads, which no two events share.
private final class Clock: Sendable {
    private let time = Atomic(0)

    // P1, both halves. Relaxed times would be a total order too; but then what the call does could be seen outside
    // of its times, on a CPU that reorders, and a correct object be found guilty. Wrapping, because that is one
    // instruction, and what checks for overflow is a loop.
    func timeOfCall() -> Int { time.wrappingAdd(1, ordering: .acquiring).oldValue }
    func timeOfReturn() -> Int { time.wrappingAdd(1, ordering: .releasing).oldValue }
}
