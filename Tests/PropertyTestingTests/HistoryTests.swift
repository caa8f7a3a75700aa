// A history recorded from correct objects has an order, and one recorded from a broken object has none.

import Glibc
import PropertyTesting
import PropertyTestingSupport
import Synchronization
import Testing

private enum Register {
    enum Operation: Sendable, Hashable {
        case read
        case add(Int)
    }

    /// An addition returns the previous value.
    static func step(_ state: Int, _ operation: Operation, _ answer: Int) -> Int? {
        guard answer == state else { return nil }
        switch operation {
        case .read: return state
        case .add(let amount): return state + amount
        }
    }
}

private final class Counter: Sendable {
    private let value = Atomic(0)

    func run(_ operation: Register.Operation) -> Int {
        switch operation {
        case .read: value.load(ordering: .sequentiallyConsistent)
        case .add(let amount): value.add(amount, ordering: .sequentiallyConsistent).oldValue
        }
    }

    /// Loses additions that other threads make between its two steps.
    func addInTwoSteps(_ amount: Int, between: () -> Void) -> Int {
        let seen = value.load(ordering: .sequentiallyConsistent)
        between()
        value.store(seen + amount, ordering: .sequentiallyConsistent)
        return seen
    }
}

@Suite(.watched(.seconds(120))) struct HistoryTests {
    private static let operations = Generator<Int>.int(in: 0...9).map { amount -> Register.Operation in
        amount == 0 ? .read : .add(amount)
    }
    private static let scripts = operations.array(count: 1...4).array(count: 1...3)

    @Test func `an atomic counter is linearizable`() async {
        await forAll(Self.scripts) { scripts in
            let history = History<Register.Operation, Int>(threads: scripts.count, callsPerThread: 4)
            let counter = Counter()
            _ = concurrently(scripts.count) { thread in
                for operation in scripts[thread] {
                    _ = history.record(on: thread, operation) { counter.run(operation) }
                }
            }
            #expect(history.calls.count == scripts.map(\.count).reduce(0, +))
            #expect(isLinearizable(history.calls, from: 0, step: Register.step))
        }
    }

    @Test func `a lost update is found`() {
        let history = History<Register.Operation, Int>(threads: 2, callsPerThread: 2)
        let (counter, hasRead, hasAdded) = (Counter(), Gate(), Gate())
        _ = concurrently(2) { thread in
            if thread == 0 {
                _ = history.record(on: 0, .add(1)) {
                    counter.addInTwoSteps(1) {
                        hasRead.open()
                        hasAdded.wait()
                    }
                }
            } else {
                hasRead.wait()
                _ = history.record(on: 1, .add(1)) { counter.run(.add(1)) }
                hasAdded.open()
            }
        }
        #expect(!isLinearizable(history.calls, from: 0, step: Register.step))
    }

    @Test func `times are in the order of the events, and no two are the same`() {
        let history = History<Int, Int>(threads: 4, callsPerThread: 500)
        _ = concurrently(4) { thread in
            for number in 0..<500 { _ = history.record(on: thread, thread) { number } }
        }
        let calls = history.calls
        #expect(calls.map(\.called) == calls.map(\.called).sorted())
        #expect(Set(calls.flatMap { [$0.called, $0.returned] }) == Set(0..<4_000))
        for thread in 0..<4 {
            let own = calls.filter { $0.operation == thread }
            #expect(own.map(\.answer) == Array(0..<500))
            #expect(zip(own, own.dropFirst()).allSatisfy { $0.returned < $1.called })
            #expect(own.allSatisfy { $0.called < $0.returned })
        }
    }

    @Test func `a call inside of another is inside its times`() throws {
        let history = History<String, Int>(threads: 2, callsPerThread: 1)
        _ = history.record(on: 0, "outer") { history.record(on: 1, "inner") { 1 } }
        let calls = history.calls
        #expect(calls.map(\.operation) == ["outer", "inner"])
        #expect(calls[0].called < calls[1].called && calls[1].returned < calls[0].returned)
    }

    /// P1: plain memory, so that a weakened ordering of the times is a race under ThreadSanitizer. The type is not
    /// known where the history is compiled: the runtime must not order the threads in its place.
    @Test func `a call that returned before another was called happened before it`() {
        for _ in 0..<200 {
            let history = History<String, Int>(threads: 2, callsPerThread: 1)
            let slots = Slots(count: 1)
            let hasReturned = Atomic(false)
            _ = concurrently(2) { thread in
                if thread == 0 {
                    _ = history.record(on: 0, "write") {
                        slots[0] = 7
                        return 7
                    }
                    hasReturned.store(true, ordering: .relaxed)
                } else {
                    while !hasReturned.load(ordering: .relaxed) { sched_yield() }
                    _ = history.record(on: 1, "read") { slots[0] }
                }
            }
            let calls = history.calls
            #expect(calls.map(\.operation) == ["write", "read"] && calls[0].returned < calls[1].called)
            #expect(calls.map(\.answer) == [7, 7])
        }
    }

    @Test func `tasks record as threads do`() async {
        let history = History<Register.Operation, Int>(threads: 3, callsPerThread: 5)
        let counter = Counter()
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<3 {
                group.addTask {
                    for _ in 0..<5 {
                        _ = await history.record(on: task, .add(1)) {
                            await Task.yield()
                            return counter.run(.add(1))
                        }
                    }
                }
            }
        }
        #expect(history.calls.count == 15)
        #expect(isLinearizable(history.calls, from: 0, step: Register.step))
    }

    /// The answers are objects, which a history releases.
    @Test func `answers are released with the history`() {
        let count = LiveCount("Answer")
        do {
            let history = History<Int, Counted>(threads: 1, callsPerThread: 10)
            for number in 0..<3 { _ = history.record(on: 0, number) { Counted(count) } }
            #expect(count.value == 3)
            #expect(history.calls.count == 3)
        }
        #expect(count.value == 0)
    }

    @Test func `more calls than fit stop the process`() async throws {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let history = History<Int, Int>(threads: 1, callsPerThread: 1)
            for number in 0..<2 { _ = history.record(on: 0, number) { 0 } }
        }
        let text = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
        #expect(text.contains("more calls than the history was created for"), "\(text)")
    }
}
