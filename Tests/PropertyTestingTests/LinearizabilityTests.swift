// LinearizabilityTests.swift - linearizable and non-linearizable histories: small ones against brute force, long ones, drawn failures.

import Glibc
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.watched(.seconds(120))) struct LinearizabilityTests {
    enum QueueOperation: Hashable, Sendable, CustomStringConvertible {
        case push(Int)
        case pop

        var description: String {
            switch self {
            case .push(let value): "push(\(value))"
            case .pop: "pop"
            }
        }
    }
    typealias QueueCall = Call<QueueOperation, Int?>

    private static func fifo(_ state: [Int], _ operation: QueueOperation, _ answer: Int?) -> [Int]? {
        switch operation {
        case .push(let value): return answer == nil ? state + [value] : nil
        case .pop: return state.first == answer ? Array(state.dropFirst()) : nil
        }
    }

    @Test func `a history with an order is accepted`() {
        // All three calls overlap, so push(2) and the pop may take effect before push(1).
        #expect(
            isLinearizable(
                [
                    Call(QueueOperation.push(1), answered: nil, called: 0, returned: 3),
                    Call(.push(2), answered: nil, called: 1, returned: 4),
                    Call(.pop, answered: 2, called: 2, returned: 5),
                ], from: [], step: Self.fifo))
        #expect(isLinearizable([QueueCall](), from: [], step: Self.fifo))
    }

    @Test func `a history without an order is rejected`() {
        #expect(
            !isLinearizable(
                [
                    Call(QueueOperation.push(1), answered: nil, called: 0, returned: 1),
                    Call(.push(2), answered: nil, called: 2, returned: 3),
                    Call(.pop, answered: 2, called: 4, returned: 5),
                ], from: [], step: Self.fifo))
        #expect(
            !isLinearizable(
                [
                    Call(QueueOperation.push(1), answered: nil, called: 0, returned: 1),
                    Call(.pop, answered: nil, called: 2, returned: 3),
                ], from: [], step: Self.fifo))
    }

    // MARK: Against all orders

    /// Tries every order of the calls that is consistent with their times.
    private static func hasOrder(_ calls: ArraySlice<QueueCall>, _ state: [Int]) -> Bool {
        if calls.isEmpty { return true }
        return calls.indices.contains { index in
            let call = calls[index]
            // A call that returned before this one was called comes before it.
            guard !calls.contains(where: { $0.returned < call.called }),
                let next = fifo(state, call.operation, call.answer)
            else { return false }
            return hasOrder(calls[..<index] + calls[(index + 1)...], next)
        }
    }

    /// Calls of up to three threads, with random times and random answers.
    private static let histories = Generator<[QueueCall]> { source in
        let threads = 1 + Int(source.draw(below: 3))
        var (calls, times) = ([QueueCall](), [Int](repeating: 0, count: threads))
        for _ in 0..<Int(source.draw(below: 7)) {
            let thread = Int(source.draw(below: UInt64(threads)))
            let called = times[thread] + Int(source.draw(below: 4))
            // Times may be equal: calls that touch count as overlapping.
            let returned = called + Int(source.draw(below: 6))
            times[thread] = returned + 1
            let operation =
                source.draw(below: 2) == 0 ? QueueOperation.push(Int(source.draw(below: 3))) : .pop
            let answer = operation == .pop && source.draw(below: 4) > 0 ? Int(source.draw(below: 3)) : nil
            calls.append(Call(operation, answered: answer, called: called, returned: returned))
        }
        return calls
    }

    /// The number of cases; fewer under the sanitizers, where everything takes ten times as long.
    private static let cases =
        getenv("STRESS_SCALE").flatMap { Double(String(cString: $0)) }.map {
            max(300, Int(10_000 * min(1, $0)))
        } ?? 10_000

    @Test func `ten thousand small histories are judged as by all their orders`() async {
        let (with, without) = (Locked(0), Locked(0))
        await forAll(Self.histories, cases: Self.cases) { history in
            let hasOrder = Self.hasOrder(history[...], [])
            #expect(isLinearizable(history, from: [], step: Self.fifo) == hasOrder)
            let failure = linearizabilityFailure(of: history, from: [], step: Self.fifo)
            #expect((failure == nil) == hasOrder)
            if let failure {
                // The reported prefix has no order. It has one if the unexplained call, and calls that return later, count as pending.
                #expect(!Self.hasOrder(failure.calls[...], []))
                let answered = failure.calls[failure.unexplained]
                let before = failure.calls.filter { $0.returned < answered.returned }
                let open = failure.calls.filter { $0.returned >= answered.returned }
                #expect(Self.hasOrder(before[...], [], with: open), "\(failure)")
            }
            (hasOrder ? with : without).withLock { $0 += 1 }
        }
        #expect(with.withLock { $0 } > Self.cases / 7 && without.withLock { $0 } > Self.cases / 7)
    }

    /// Like `hasOrder`, but each call in `open` may or may not take effect; if it does, it gives its recorded answer.
    private static func hasOrder(_ calls: ArraySlice<QueueCall>, _ state: [Int], with open: [QueueCall])
        -> Bool
    {
        if calls.isEmpty { return true }
        for index in calls.indices {
            let call = calls[index]
            guard !calls.contains(where: { $0.returned < call.called }),
                let next = fifo(state, call.operation, call.answer)
            else { continue }
            if hasOrder(calls[..<index] + calls[(index + 1)...], next, with: open) { return true }
        }
        for index in open.indices where !calls.contains(where: { $0.returned < open[index].called }) {
            guard let next = fifo(state, open[index].operation, open[index].answer) else { continue }
            var rest = open
            rest.remove(at: index)
            if hasOrder(calls, next, with: rest) { return true }
        }
        return false
    }

    // MARK: Long histories

    /// A history of a queue that is filled and emptied by calls that may overlap their neighbours.
    private static func long(_ count: Int) -> [QueueCall] {
        var (queue, random) = ([Int](), SplitMix64(seed: 5))
        return (0..<count).map { number in
            // The call takes effect at 10 times its number, and may overlap the previous call, the next call, or both.
            let called = 10 * number - Int(random.next() % 8)
            let returned = 10 * number + Int(random.next() % 8)
            if random.next() % 2 == 0, queue.count < 20 {
                queue.append(number)
                return Call(.push(number), answered: nil, called: called, returned: returned)
            }
            return Call(
                .pop, answered: queue.isEmpty ? nil : queue.removeFirst(), called: called, returned: returned)
        }
    }

    @Test func `a long history is judged in the time of its calls`() {
        var calls = Self.long(20_000)
        #expect(isLinearizable(calls, from: [], step: Self.fifo))
        let place = calls.indices.last { calls[$0].operation == .pop && calls[$0].answer != nil }!
        calls[place] = Call(.pop, answered: -1, called: calls[place].called, returned: calls[place].returned)
        let failure = linearizabilityFailure(of: calls, from: [], step: Self.fifo)
        #expect(failure?.calls[failure!.unexplained].answer == -1)
        #expect(failure.map { $0.calls.count > 19_000 } ?? false)
    }

    @Test func `sixty calls that all overlap are put in order`() {
        let calls =
            (0..<60).map { QueueCall(.push($0), answered: nil, called: 0, returned: 100 + $0) }
            + [QueueCall(.pop, answered: 59, called: 200, returned: 201)]
        #expect(isLinearizable(Array(calls.prefix(60)), from: [], step: Self.fifo))
        #expect(isLinearizable(Array(calls.suffix(1)), from: [59], step: Self.fifo))
    }

    @Test func `endless overlap stops the process`() async throws {
        await #expect(processExitsWith: .failure) {
            let calls = (0..<65).map {
                Call(QueueOperation.push($0), answered: Int?.none, called: 0, returned: 1)
            }
            _ = isLinearizable(calls, from: 0) { state, _, _ in state }
        }
    }

    @Test func `independent parts are judged separately`() {
        struct Entry: Hashable, Sendable {
            let key: Int
            let isWrite: Bool
        }
        func step(_ state: Int, _ operation: Entry, _ answer: Int) -> Int? {
            operation.isWrite ? answer : state == answer ? state : nil
        }
        // Sixteen keys, each with a writer and a reader. As one history, the state would have to combine all keys.
        var calls: [Call<Entry, Int>] = []
        for key in 0..<16 {
            for round in 0..<20 {
                calls.append(
                    Call(
                        Entry(key: key, isWrite: true), answered: round, called: 10 * round,
                        returned: 10 * round + 9))
                calls.append(
                    Call(
                        Entry(key: key, isWrite: false), answered: round, called: 10 * round + 5,
                        returned: 10 * round + 12))
            }
        }
        #expect(isLinearizable(calls, partitionedBy: { $0.key }, from: -1, step: step))
        calls.append(Call(Entry(key: 3, isWrite: false), answered: 4, called: 500, returned: 501))
        #expect(!isLinearizable(calls, partitionedBy: { $0.key }, from: -1, step: step))
    }

    @Test func `the shortest history without an order is drawn`() throws {
        let failure = try #require(
            linearizabilityFailure(
                of: [
                    Call(QueueOperation.push(1), answered: nil, called: 0, returned: 2),
                    Call(.push(2), answered: nil, called: 3, returned: 5),
                    Call(.pop, answered: 2, called: 4, returned: 6),
                    Call(.pop, answered: 1, called: 8, returned: 9),
                ], from: [], step: Self.fifo))
        #expect(failure.unexplained == 2 && failure.calls.count == 3)
        #expect(
            failure.description == """
                || push(1) = nil
                  |-| push(2) = nil
                   |-| pop = Optional(2)  <- no order gives this answer
                """)
    }
}
