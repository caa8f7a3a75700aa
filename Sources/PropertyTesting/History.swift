// History: records calls while threads make them, and hands them to `isLinearizable`.
//
// Orderings:
//   P1  the time of a return (release) -> the time of a call (acquire): when one call returned before another
//       was called, by the times, then it happened before the other.

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
/// To record perturbs little: a call costs two additions to one counter, and a write to memory of the thread's
/// own, which is there and in place before. But those additions order what they separate (P1): calls that do not
/// overlap are no test of whether the object publishes what it hands over. Ask that without a history.
public final class History<Operation: Sendable, Answer: Sendable>: Sendable {
    private let lanes: [Lane<Call<Operation, Answer>>]
    private let clock = Clock()

    /// Creates an empty history, with the memory that it is ever going to need.
    public init(threads: Int, callsPerThread: Int) {
        precondition(threads > 0 && callsPerThread > 0, "History: there must be a thread, and a call")
        lanes = (0..<threads).map { _ in Lane(capacity: callsPerThread) }
    }

    /// Makes a call, and records it.
    ///
    /// A body cannot throw, because every call needs its answer: that it threw an error is one.
    ///
    /// - Parameter thread: the number of the thread, from 0; no two may use the same number at the same time.
    public func record(on thread: Int, _ operation: Operation, _ body: () -> Answer) -> Answer {
        let lane = lanes[thread]
        let called = clock.timeOfCall()
        let answer = body()
        lane.append(Call(operation, answered: answer, called: called, returned: clock.timeOfReturn()))
        return answer
    }

    /// Makes a call that suspends, and records it; as the other `record`, with a task for a thread.
    public func record(
        on thread: Int, _ operation: Operation, isolation: isolated (any Actor)? = #isolation,
        _ body: () async -> Answer
    ) async -> Answer {
        let lane = lanes[thread]
        let called = clock.timeOfCall()
        let answer = await body()
        lane.append(Call(operation, answered: answer, called: called, returned: clock.timeOfReturn()))
        return answer
    }

    /// The calls of all threads, in the order in which they were called.
    ///
    /// - Precondition: what records was joined, or is otherwise known to have ended.
    public var calls: [Call<Operation, Answer>] {
        lanes.flatMap(\.elements).sorted { $0.called < $1.called }
    }
}

/// One time for all threads, which no two events share.
private final class Clock: Sendable {
    private let time = Atomic(0)

    // P1, both halves. Relaxed times would be a total order too; but then what the call does could be seen outside
    // of its times, on a CPU that reorders, and a correct object be found guilty.
    func timeOfCall() -> Int { time.add(1, ordering: .acquiring).oldValue }
    func timeOfReturn() -> Int { time.add(1, ordering: .releasing).oldValue }
}

/// What one thread writes, and others read when it has ended.
private final class Lane<Element: Sendable>: @unchecked Sendable {
    // Unchecked: used by one thread at a time, which the caller sees to.
    private let storage: UnsafeMutablePointer<Element>
    private let capacity: Int
    private var count = 0

    init(capacity: Int) {
        self.capacity = capacity
        // Space on both sides, so that no two lanes share a line of the cache; written to once, so that the
        // kernel has no page to find later.
        let bytes = UnsafeMutableRawPointer.allocate(
            byteCount: capacity * MemoryLayout<Element>.stride + 2 * Self.margin, alignment: Self.margin)
        bytes.initializeMemory(
            as: UInt8.self, repeating: 0, count: capacity * MemoryLayout<Element>.stride + 2 * Self.margin)
        storage = (bytes + Self.margin).bindMemory(to: Element.self, capacity: capacity)
    }

    /// Two lines, which many CPUs fetch together; also more than any element is aligned to.
    private static var margin: Int { 128 }

    deinit {
        storage.deinitialize(count: count)
        (UnsafeMutableRawPointer(storage) - Self.margin).deallocate()
    }

    func append(_ element: Element) {
        precondition(count < capacity, "History: a thread made more calls than the history was created for")
        (storage + count).initialize(to: element)
        count += 1
    }

    var elements: [Element] { Array(UnsafeBufferPointer(start: storage, count: count)) }
}
