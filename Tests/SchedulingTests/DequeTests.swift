// The work-stealing deque in isolation: one owner, which pushes and pops, and thieves, which steal.
//
//   Q1, Q2  Nothing is lost, nothing is taken twice.
//   Q3      The owner pops the newest; thieves take the oldest, in order. When thieves may take many at once,
//           the owner occasionally pops the oldest (D4 of deque.c), after at least 32 pops.
//   Q4      Every history is linearizable, except that a steal may find nothing when another take was
//           faster.
//   Q5      Otherwise, no thread finds a non-empty deque empty.
//   Q6      What was written before a push is visible after the take.
//   Q7, Q8  Indices wrap around the buffer, buffers grow, and replaced ones are freed.

import Glibc
import PropertyTesting
import PropertyTestingSupport
import Testing

/// A thread's request to a deque.
private enum Step: Hashable, Sendable {
    case push(Range<Int>)
    case pop
    case steal(room: Int)
}

/// From this depth on a deque is open: thieves may take many at once.
private let openDepth = 96
/// The distance that an open deque keeps between its owner's end and thieves.
private let openDistance = 32
/// The buffer of a new deque.
private let firstCapacity = 256

/// Numbers of operations to push: mostly a few, occasionally enough to open the deque, or to grow it.
private let bulks = Generator<Int>.frequency([
    (6, .int(in: 1...3)), (2, .int(in: 60...130)), (1, .int(in: 200...700)),
])

/// An owner's steps: n > 0 pushes n operations, n < 0 pops -n.
private let strides = Generator<Int>.oneOf([bulks, bulks.map { -$0 }])

/// The deque as a list: oldest first.
private struct Model: Hashable {
    var waiting: [Int] = []

    /// Performs a step; returns whether a deque may give that answer. `contended`: another take may have been faster.
    mutating func allows(_ step: Step, _ answer: [Int], contended: Bool = false) -> Bool {
        switch step {
        case .push(let numbers):
            waiting += numbers
            return answer.isEmpty
        case .pop:
            guard let popped = answer.first else { return waiting.isEmpty }
            if popped == waiting.last {
                waiting.removeLast()
            } else if popped == waiting.first {
                waiting.removeFirst()
            } else {
                return false
            }
            return true
        case .steal(let room):
            if answer.isEmpty { return waiting.isEmpty || contended }
            let limit = min(room, max(1, (waiting.count + 1) / 2))
            guard answer.count <= limit, waiting.starts(with: answer) else { return false }
            waiting.removeFirst(answer.count)
            return true
        }
    }
}

extension TestDeque {
    fileprivate func answer(_ step: Step) -> [Int] {
        switch step {
        case .push(let numbers):
            push(numbers)
            return []
        case .pop: return pop().map { [$0] } ?? []
        case .steal(let room): return steal(room: room)
        }
    }

    /// Called by the owner.
    fileprivate func popAll() -> [Int] {
        var popped: [Int] = []
        while let number = pop() { popped.append(number) }
        return popped
    }
}

/// Runs an owner and thieves on one deque. The thieves run until the owner is done. Returns what each of them took,
/// the owner first.
private func share(
    _ deque: TestDeque, thieves: Int, rooms: [Int] = [32], owner: @escaping @Sendable () -> [Int],
    steals: @escaping @Sendable (Int) -> Void = { _ in }
) -> [[Int]] {
    let ended = Count()
    return concurrently(1 + thieves) { thread in
        if thread == 0 {
            let taken = owner()
            ended.add()
            return taken
        }
        return asReader {
            var taken: [Int] = []
            while ended.value == 0 {
                let batch = deque.steal(room: rooms[(thread - 1) % rooms.count])
                for number in batch { steals(number) }
                taken += batch
            }
            return taken
        }
    }
}

@Suite(.inTurn) struct DequeTests {
    /// Q3 and Q5 on one thread, where nothing excuses a steal that finds nothing.
    @Test func `a sequential deque is a list: popped at its end, stolen from at its start`() async {
        let steps = Generator<Int>.frequency([(3, strides), (2, .int(in: 1_001...1_040))])
        await forAll(
            .array(of: steps, count: 1...60), cases: scaled(200),
            covering: [.cover(30, "opens") { $0.contains { (openDepth...1000).contains($0) } }]
        ) { program in
            let deque = TestDeque()
            var model = Model()
            var pushed = 0
            var newestPopped = 0  // in a row
            func perform(_ step: Step) throws {
                let newest = model.waiting.last
                let answer = deque.answer(step)
                let allowed = model.allows(step, answer)
                try #require(allowed, "\(step) answered \(answer)")
                guard step == .pop else { return }
                if answer.first == newest {
                    newestPopped += 1
                } else {
                    try #require(newestPopped >= openDistance)
                    newestPopped = 0
                }
            }
            try asReader {
                for step in program {
                    if step > 1000 {
                        try perform(.steal(room: step - 1000))
                    } else if step > 0 {
                        try perform(.push(pushed..<pushed + step))
                        pushed += step
                    } else {
                        for _ in 0..<(-step) { try perform(.pop) }
                    }
                }
                while !model.waiting.isEmpty { try perform(.pop) }
                try perform(.pop)
                try perform(.steal(room: 32))
            }
        }
    }

    /// Q3, exactly: below the depth at which thieves may take many, the newest is always popped.
    @Test func `a lone owner pops its latest push`() async {
        await forAll(.array(of: .int(in: -20...20), count: 1...200), cases: scaled(100)) { program in
            let deque = TestDeque()
            var model: [Int] = []
            var pushed = 0
            for step in program {
                let room = min(step, openDepth - 1 - model.count)
                if room > 0 {
                    deque.push(pushed..<pushed + room)
                    model += pushed..<pushed + room
                    pushed += room
                }
                for _ in 0..<max(0, -step) { try #require(deque.pop() == model.popLast()) }
            }
        }
    }

    /// Q3: one thief takes everything, in the order of the pushes, and leaves nothing (Q5).
    @Test(arguments: [1, 2, 7, 32], [1, 95, 96, 1000])
    func `thieves take the oldest first`(room: Int, count: Int) {
        let deque = TestDeque(holding: 0..<count)
        asReader {
            var taken: [Int] = []
            while taken.count < count {
                let batch = deque.steal(room: room)
                if batch.isEmpty { break }
                taken += batch
            }
            #expect(taken == Array(0..<count))
            #expect(deque.steal(room: room) == [])
        }
        #expect(deque.pop() == nil)
    }

    /// Taking one at a time would be correct as well, but taking many is the purpose of opening a deque.
    @Test func `a thief takes many of a deep deque, and at most half`() {
        let deque = TestDeque(holding: 0..<1000)
        let shallow = TestDeque(holding: 0..<20)
        asReader {
            #expect(deque.steal(room: 32) == Array(0..<32))
            #expect(deque.steal(room: 2000).count <= 484)
            #expect(shallow.steal(room: 32) == [0])
        }
    }

    /// The same for an owner that pushes no more: it opens the deque again whenever it had to close it.
    @Test func `a thief takes many of a deep deque that is only popped`() {
        let deque = TestDeque(holding: 0..<10_000)
        var depth = 10_000
        asReader {
            while depth > 4 * openDepth {
                for _ in 0...openDistance { #expect(deque.pop() != nil) }
                let batch = deque.steal(room: 32)
                #expect(batch.count == 32, "at depth \(depth)")
                depth -= openDistance + 1 + batch.count
            }
        }
    }

    /// Q7: every position of a buffer is used many times over.
    @Test(arguments: [1, 255, 256])
    func `indices wrap in the buffer`(depth: Int) {
        let deque = TestDeque(holding: 0..<depth)
        var next = depth
        asReader {
            for expected in 0..<20 * firstCapacity {
                let taken = deque.steal(room: 1)
                #expect(taken == [expected])
                if taken != [expected] { return }
                deque.push(next..<next + 1)
                next += 1
            }
        }
        #expect(deque.unreclaimed == 0)  // nothing was replaced: the depth never exceeded the buffer
        #expect(deque.popAll().sorted() == Array(next - depth..<next))
    }

    /// Q7: growing by one step and by several at once, while the contents wrap around the end of the buffer.
    @Test(arguments: [1, 100, 255], [1, 300, 5000])
    func `a growing buffer keeps its items`(offset: Int, more: Int) {
        let deque = TestDeque(holding: 0..<offset)
        asReader { for _ in 0..<offset { _ = deque.steal(room: 1) } }
        deque.push(offset..<offset + firstCapacity)
        #expect(deque.unreclaimed == 0)
        deque.push(offset + firstCapacity..<offset + firstCapacity + more)
        #expect(asReader { deque.steal(room: 1) } == [offset])
        #expect(deque.popAll().sorted() == Array(offset + 1..<offset + firstCapacity + more))
    }

    /// Q8: doubling replaces the buffer a few times; each old one is freed while the deque lives.
    @Test func `replaced buffers are freed`() {
        let deque = TestDeque()
        var most = 0
        for number in 0..<50_000 {
            deque.push(number..<number + 1)
            most = max(most, deque.unreclaimed)
        }
        #expect((1...8).contains(most))  // 256 ... 32768
        #expect(eventually { deque.unreclaimed == 0 })
        #expect(deque.popAll().count == 50_000)
    }

    /// Q8, in its own process, because its memory is measured.
    @Test(.enabled(if: !isThreadSanitized && !isAddressSanitized))
    func `a deque that is destroyed leaves no memory behind`() async {
        await #expect(processExitsWith: .success) {
            func useOne() {
                let deque = TestDeque(holding: 0..<100)
                for start in stride(from: 100, to: 10_000, by: 100) { deque.push(start..<start + 100) }
                _ = deque.pop()
            }
            /// Keeps the number of buffers that await a grace period small, however late it comes.
            func use(_ count: Int) {
                for number in 1...count {
                    useOne()
                    if number.isMultiple(of: 10) { TestDeque.reclaim() }
                }
            }
            use(150)  // until the allocator has the reserves that it needs
            let before = residentBytes()
            use(100)
            #expect(residentBytes() - before < 100 * 65536)  // the last two buffers have 256 and 512 kB
        }
    }
}

extension Stress {
    @Suite(.inTurn) struct Deque {
        /// Q1, Q2, and the order in which one thief takes (Q3), for generated programs.
        @Test(arguments: [1, 2, 3])
        func `every operation is taken exactly once, by the owner or by a thief`(thieves: Int) async {
            await forAll(
                .array(of: strides, count: 1...40), cases: scaled(100),
                covering: [.cover(30, "opens") { $0.contains { $0 >= openDepth } }]
            ) { program in
                let deque = TestDeque()
                let pushed = program.reduce(0) { $0 + max(0, $1) }
                let taken = share(
                    deque, thieves: thieves, rooms: [32, 3, 1],
                    owner: {
                        var next = 0
                        var popped: [Int] = []
                        for step in program {
                            if step > 0 {
                                deque.push(next..<next + step)
                                next += step
                            }
                            for _ in 0..<max(0, -step) {
                                guard let number = deque.pop() else { break }
                                popped.append(number)
                            }
                        }
                        return popped + deque.popAll()
                    })
                try #require(taken.flatMap(\.self).sorted() == Array(0..<pushed))
                for stolen in taken.dropFirst() { try #require(stolen.isAscending) }
            }
        }

        /// The owner and the thieves compete for the same operations, every time: a test of P2's fences, and of the
        /// compare-exchange on the last operation. The failure that a fence prevents needs two steals during one pop,
        /// so the loops are as tight as can be.
        @Test(arguments: [1, 2, 3], [1, 2])
        func `the last operations are taken once`(depth: Int, thieves: Int) {
            let deque = TestDeque()
            let rounds = scaled(300_000)
            let times = Tally(count: rounds * depth, takers: 1 + thieves)
            let ended = Count()
            _ = concurrently(1 + thieves) { thread in
                if thread == 0 {
                    for round in 0..<rounds {
                        deque.pushQuickly(round * depth, count: depth)
                        while deque.popQuickly(into: times, as: 0) {}
                    }
                    ended.add()
                } else {
                    asReader {
                        while ended.value == 0 {
                            for _ in 0..<100 { deque.stealQuickly(into: times, as: thread) }
                        }
                    }
                }
                return true
            }
            #expect(times.areAllOnce)
        }

        /// D3 and D4: the owner pops down into the part that thieves take many from, again and again.
        @Test(arguments: [1, 2])
        func `an owner popping during bulk steals takes nothing twice`(thieves: Int) {
            let deque = TestDeque()
            let rounds = scaled(2_000)
            let depth = 140
            let taken = share(
                deque, thieves: thieves,
                owner: {
                    var popped: [Int] = []
                    for round in 0..<rounds {
                        deque.push(round * depth..<(round + 1) * depth)
                        popped += deque.popAll()
                    }
                    return popped
                })
            #expect(taken.flatMap(\.self).sorted() == Array(0..<rounds * depth))
            for stolen in taken.dropFirst() { #expect(stolen.isAscending) }
        }

        /// Q6, Q7: `Slots` is plain memory. The taker of an operation reads what the owner wrote before the push,
        /// even while buffers grow. ThreadSanitizer sees a missing ordering as a data race.
        @Test(arguments: [1, 3])
        func `a taker of an operation sees writes before the push`(thieves: Int) {
            let count = scaled(40_000)
            let slots = Slots(count: count)
            let wrong = Count()
            let check: @Sendable (Int) -> Void = { number in
                if number == torn || slots[number] != number * 3 + 1 { wrong.add() }
            }
            let deque = TestDeque()
            let taken = share(
                deque, thieves: thieves,
                owner: {
                    var popped: [Int] = []
                    for number in 0..<count {
                        slots[number] = number * 3 + 1
                        deque.push(number..<number + 1)
                        if number % 5 == 0, let number = deque.pop() { popped.append(number) }
                    }
                    popped += deque.popAll()
                    for number in popped { check(number) }
                    return popped
                }, steals: check)
            #expect(wrong.value == 0)
            #expect(taken.reduce(0) { $0 + $1.count } == count)
            #expect(eventually { deque.unreclaimed == 0 })
        }

        /// Q4, Q5: small histories on real threads, on a deque that is empty, nearly so, or open.
        @Test(arguments: [0, 1, 2, 130])
        func `each history fits a list`(holding: Int) async {
            let calls = Generator<Int>.frequency([
                (3, .int(in: -1 ... -1)), (2, .int(in: 1...2)), (1, .int(in: 100...110)),
            ])
            let owner = calls.array(count: 1...10)
            let thieves = Generator<Int>.element(of: [1, 32]).array(count: 1...6).array(count: 1...2)
            let deque = TestDeque()  // one for all cases, so that the indices differ
            await forAll(.zip(owner, thieves), cases: scaled(400)) { (owner: [Int], thieves: [[Int]]) in
                _ = deque.popAll()
                if holding > 0 { deque.push(0..<holding) }
                var next = holding
                var programs: [[Step]] = [[]]
                for step in owner {
                    programs[0].append(step < 0 ? .pop : .push(next..<next + step))
                    next += max(0, step)
                }
                programs += thieves.map { $0.map { .steal(room: $0) } }
                let history = concurrently(programs.count) { [programs] thread in
                    asReader {
                        programs[thread].map { step -> Call<Step, [Int]> in
                            let called = now()
                            let answer = deque.answer(step)
                            return Call(step, answered: answer, called: called, returned: now())
                        }
                    }
                }.flatMap(\.self)
                try #require(isAllowed(history, from: Model(waiting: Array(0..<holding))))
            }
        }

        /// A steal that finds nothing is excused by any other take that overlaps it and takes something.
        private func isAllowed(_ history: [Call<Step, [Int]>], from model: Model) -> Bool {
            let calls = history.map { call in
                let contended = history.contains { other in
                    !other.answer.isEmpty && other.called <= call.returned && call.called <= other.returned
                }
                return Call(
                    Attempt(step: call.operation, contended: contended), answered: call.answer,
                    called: call.called, returned: call.returned)
            }
            return isLinearizable(calls, from: model) { model, attempt, answer in
                var model = model
                return model.allows(attempt.step, answer, contended: attempt.contended) ? model : nil
            }
        }
    }
}

/// A step, and whether another take overlapped it.
private struct Attempt: Sendable {
    let step: Step
    let contended: Bool
}
