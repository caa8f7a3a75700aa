// The inbox of one outside thread, in isolation: that thread appends, consumers take from the front, any thread closes.
//
//   Q1, Q2  What was appended is taken once; what was refused, never.
//   Q3      Operations leave in the order in which they came, a batch without gaps.
//   Q4      Every history is one of the sequential queue. A take may find nothing when another one was faster.
//   Q5      Otherwise, no thread finds a non-empty inbox empty. A look finds it empty only when everything
//           appended before the look is taken. A worker relies on that before it sleeps.
//   Q6      What was written before an append is visible after the take.
//   Q7, Q8  Segments follow each other; used-up segments are freed.

import PropertyTesting
import PropertyTestingSupport
import Testing

/// A request of a thread to an inbox.
private enum Step: Hashable, Sendable {
    case append(Range<Int>)
    case take(room: Int)
    case look
    case close
}

/// The answer of an inbox.
private enum Answer: Hashable, Sendable {
    case appended, refused, closed
    case took([Int])
    case isEmpty(Bool)
}

/// Numbers of operations to append at once: within a segment, and across several (32, 64 ... 512).
private let bulks = Generator<Int>.frequency([
    (6, .int(in: 1...3)), (3, .int(in: 20...100)), (1, .int(in: 500...1500)),
])

/// The inbox as a list: oldest first.
private struct Model: Hashable {
    var waiting: [Int] = []
    var isClosed = false

    /// Performs a step; returns whether an inbox may give that answer. `disturbed`: a concurrent call excuses an answer of
    /// "nothing there".
    mutating func allows(_ step: Step, _ answer: Answer, disturbed: Bool = false) -> Bool {
        switch (step, answer) {
        case (.append(let numbers), .appended):
            waiting += numbers
            return !isClosed
        case (.append, .refused):
            return isClosed
        case (.close, .closed):
            isClosed = true
            return true
        case (.take(let room), .took(let taken)):
            if taken.isEmpty { return waiting.isEmpty || disturbed }
            guard taken.count <= room, waiting.starts(with: taken) else { return false }
            waiting.removeFirst(taken.count)
            return true
        case (.look, .isEmpty(let isEmpty)):
            return isEmpty == waiting.isEmpty || (isEmpty && disturbed)
        default:
            return false
        }
    }
}

extension TestInbox {
    fileprivate func answer(_ step: Step) -> Answer {
        switch step {
        case .append(let numbers): return append(numbers) ? .appended : .refused
        case .take(let room): return .took(take(room: room))
        case .look: return .isEmpty(isEmpty)
        case .close:
            close()
            return .closed
        }
    }

    /// Takes what is left, as the only consumer.
    fileprivate func takeAll() -> [Int] {
        var taken: [Int] = []
        while true {
            let batch = take()
            if batch.isEmpty { return taken }
            taken += batch
        }
    }
}

extension Array<Int> {
    fileprivate var hasNoGaps: Bool { zip(self, dropFirst()).allSatisfy { $0 + 1 == $1 } }
}

/// Runs a producer and consumers on one inbox. The consumers run until the producer has returned and nothing is left. Returns
/// what each consumer took, batch by batch.
private func share(
    _ inbox: TestInbox, consumers: Int, rooms: [Int] = [32],
    producer: @escaping @Sendable () -> Void, takes: @escaping @Sendable (Int) -> Void = { _ in }
) -> [[[Int]]] {
    let ended = Count()
    return concurrently(1 + consumers) { thread in
        if thread == 0 {
            producer()
            ended.add()
            return []
        }
        return asReader {
            var batches: [[Int]] = []
            while true {
                let isLast = ended.value == 1  // read before `isEmpty`: if true, no more appends
                if isLast && inbox.isEmpty { return batches }
                let batch = inbox.take(room: rooms[(thread - 1) % rooms.count])
                for number in batch { takes(number) }
                if !batch.isEmpty { batches.append(batch) }
            }
        }
    }
}

@Suite(.inTurn) struct InboxTests {
    /// Q3 and Q5 on one thread, where nothing excuses a take that finds nothing; and what a close does.
    @Test func `a sequential inbox is a list: appended at its end, taken from at its start`() async {
        let appends = bulks.map { Step.append(0..<$0) }
        let steps = Generator<Step>.frequency([
            (8, appends), (8, Generator<Int>.int(in: 1...40).map { .take(room: $0) }),
            (3, .element(of: [.look])), (1, .element(of: [.close])),
        ])
        await forAll(
            steps.array(count: 1...80), cases: scaled(80),
            covering: [.cover(50, "is closed") { $0.contains(.close) }]
        ) { program in
            let inbox = TestInbox()
            var model = Model()
            var appended = 0
            func perform(_ step: Step) throws {
                let answer = inbox.answer(step)
                let allowed = model.allows(step, answer)
                try #require(allowed, "\(step) answered \(answer)")
            }
            try asReader {
                for step in program {
                    if case .append(let numbers) = step {
                        try perform(.append(appended..<appended + numbers.count))
                        appended += numbers.count
                    } else {
                        try perform(step)
                    }
                }
                while !model.waiting.isEmpty { try perform(.take(room: 32)) }
                try perform(.take(room: 32))
                try perform(.look)
            }
        }
    }

    /// Q7: the sizes around the ends of the first segments, in one append and in many.
    @Test(arguments: [31, 32, 33, 95, 96, 97, 224, 480, 992, 993, 5000], [true, false])
    func `appends of every size keep their order`(count: Int, atOnce: Bool) {
        let inbox = TestInbox()
        if atOnce {
            #expect(inbox.append(0..<count))
        } else {
            #expect((0..<count).allSatisfy { inbox.append($0..<$0 + 1) })
        }
        asReader {
            #expect(!inbox.isEmpty)
            #expect(inbox.takeAll() == Array(0..<count))
            #expect(inbox.isEmpty)
            #expect(inbox.append(0..<3))  // into the segment where the last one ended
            #expect(inbox.takeAll() == [0, 1, 2])
        }
    }

    @Test func `a closed inbox keeps its contents, and refuses appends`() {
        let inbox = TestInbox()
        #expect(inbox.append(0..<40))
        asReader {
            inbox.close()
            inbox.close()
            #expect(!inbox.append(40..<41))
            #expect(!inbox.append(40..<2000))  // which would have needed new segments
            #expect(!inbox.isEmpty)
            #expect(inbox.takeAll() == Array(0..<40))
            #expect(inbox.isEmpty)
            #expect(!inbox.append(40..<41))
            #expect(inbox.takeAll() == [])
        }
    }

    /// Q8, in its own process, because its memory is measured: 100 MB pass through one inbox, and inboxes are destroyed with
    /// operations left in them.
    @Test(.enabled(if: !isThreadSanitized && !isAddressSanitized))
    func `segments that are used up are freed`() async {
        await #expect(processExitsWith: .success) {
            func pass(_ count: Int, through inbox: TestInbox) {
                asReader {
                    for _ in 0..<count / 100 {
                        _ = inbox.append(0..<100)
                        _ = inbox.takeAll()
                    }
                }
            }
            func useOne() {
                let inbox = TestInbox()
                for _ in 0..<50 { _ = inbox.append(0..<100) }
                pass(1000, through: inbox)
                _ = inbox.append(0..<5000)
                asReader { inbox.close() }
                _ = inbox.append(0..<5000)  // refused, and its segments are freed
            }
            let inbox = TestInbox()
            pass(300_000, through: inbox)
            for _ in 0..<100 { useOne() }  // until the allocator has the reserves that it needs
            // On a busy machine much memory may wait for a grace period, but only in one round. A leak would show in every
            // round: 96 MB of used-up segments, 32 MB of remaining ones.
            func keepsLess(than bytes: Int, _ body: () -> Void) -> Bool {
                (0..<4).contains { _ in
                    let before = residentBytes()
                    body()
                    return eventually { residentBytes() - before < bytes }
                }
            }
            #expect(keepsLess(than: 16 << 20) { pass(3_000_000, through: inbox) })
            #expect(keepsLess(than: 100 * 65536) { for _ in 0..<100 { useOne() } })
        }
    }
}

extension Stress {
    @Suite(.inTurn) struct Inbox {
        /// Q1, Q2, Q3 for programs of a producer.
        @Test(arguments: [1, 2, 3])
        func `every operation is taken exactly once, by one consumer`(consumers: Int) async {
            await forAll(bulks.array(count: 1...30), cases: scaled(60)) { program in
                let inbox = TestInbox()
                let refused = Count()
                let batches = share(
                    inbox, consumers: consumers, rooms: [32, 3, 1],
                    producer: {
                        var next = 0
                        for step in program {
                            if !inbox.append(next..<next + step) { refused.add() }
                            next += step
                        }
                    })
                let taken = batches.flatMap { $0.flatMap(\.self) }
                try #require(refused.value == 0)
                try #require(taken.sorted() == Array(0..<program.reduce(0, +)))
                for consumer in batches {
                    try #require(consumer.flatMap(\.self).isAscending)
                    for batch in consumer { try #require(batch.hasNoGaps) }
                }
            }
        }

        /// Q2: consumers compete for every operation, and at every end of a segment.
        @Test(arguments: [2, 3])
        func `consumers that meet take nothing twice`(consumers: Int) {
            let inbox = TestInbox()
            let count = scaled(100_000)
            let batches = share(
                inbox, consumers: consumers, rooms: [1, 2, 5],
                producer: { for number in 0..<count { _ = inbox.append(number..<number + 1) } })
            #expect(batches.flatMap { $0.flatMap(\.self) }.sorted() == Array(0..<count))
            for consumer in batches { #expect(consumer.flatMap(\.self).isAscending) }
        }

        /// Q6: `Slots` is plain memory; under ThreadSanitizer a missing order is a data race.
        @Test(arguments: [1, 3])
        func `a consumer sees what was written before the append`(consumers: Int) {
            let inbox = TestInbox()
            let count = scaled(40_000)
            let slots = Slots(count: count)
            let wrong = Count()
            let batches = share(
                inbox, consumers: consumers,
                producer: {
                    for number in 0..<count {
                        slots[number] = number * 3 + 1
                        _ = inbox.append(number..<number + 1)
                    }
                },
                takes: { number in
                    if number == torn || slots[number] != number * 3 + 1 { wrong.add() }
                })
            #expect(wrong.value == 0)
            #expect(batches.reduce(0) { $0 + $1.reduce(0) { $0 + $1.count } } == count)
        }

        /// B1: an append precedes the close and is taken, or is refused as a whole. After a refused append, every later one is
        /// refused.
        @Test(arguments: [1, 3])
        func `a racing append at a close is all or nothing`(closers: Int) async {
            await forAll(
                .zip(.int(in: 1...100), .int(in: 0...3000)), cases: scaled(150)
            ) { (size: Int, delay: Int) in
                let inbox = TestInbox()
                let appended = concurrently(1 + closers) { thread -> Int in
                    if thread > 0 {
                        asReader {
                            for _ in 0..<delay / thread { _ = inbox.isEmpty }
                            inbox.close()
                        }
                        return 0
                    }
                    var next = 0
                    while inbox.append(next..<next + size) { next += size }
                    for _ in 0..<3 where inbox.append(next..<next + size) { return -1 }
                    return next
                }
                let taken = asReader { inbox.takeAll() }
                try #require(taken == Array(0..<max(0, appended[0])))
                try #require(appended[0] >= 0, "an append after a refused one was accepted")
            }
        }

        /// Q4, Q5: small histories on real threads, that begin in the middle of a segment or at its end.
        @Test(arguments: [0, 30, 32, 94])
        func `each history fits a list`(before: Int) async {
            let producer = Generator<Int>.frequency([(4, .int(in: 1...3)), (1, .int(in: 30...70))])
                .array(count: 1...8)
            let consumer = Generator<Step>.frequency([
                (4, .element(of: [.take(room: 1), .take(room: 32)])), (2, .element(of: [.look])),
                (1, .element(of: [.close])),
            ]).array(count: 1...6)
            await forAll(.zip(producer, consumer.array(count: 1...2)), cases: scaled(100)) {
                (bulks: [Int], consumers: [[Step]]) in
                let inbox = TestInbox()
                _ = before == 0 || inbox.append(0..<before)
                _ = asReader { inbox.takeAll() }
                var next = 0
                var programs: [[Step]] = [[]]
                for bulk in bulks {
                    programs[0].append(.append(next..<next + bulk))
                    next += bulk
                }
                programs += consumers
                let history = concurrently(programs.count) { [programs] thread in
                    asReader {
                        programs[thread].map { step -> Call<Step, Answer> in
                            let called = now()
                            let answer = inbox.answer(step)
                            return Call(step, answered: answer, called: called, returned: now())
                        }
                    }
                }.flatMap(\.self)
                try #require(isAllowed(history))
            }
        }

        /// A take that finds nothing is excused by another take that overlaps it and took something; a look, by an append that
        /// overlaps it.
        private func isAllowed(_ history: [Call<Step, Answer>]) -> Bool {
            let calls = history.map { call in
                let disturbed = history.contains { other in
                    guard other.called <= call.returned && call.called <= other.returned else { return false }
                    switch (call.operation, other.answer) {
                    case (.take, .took(let taken)): return !taken.isEmpty
                    case (.look, .appended): return true
                    default: return false
                    }
                }
                return Call(
                    Attempt(step: call.operation, disturbed: disturbed), answered: call.answer,
                    called: call.called, returned: call.returned)
            }
            return isLinearizable(calls, from: Model()) { model, attempt, answer in
                var model = model
                return model.allows(attempt.step, answer, disturbed: attempt.disturbed) ? model : nil
            }
        }
    }
}

/// A step, and whether a concurrent call excuses an answer of "nothing there".
private struct Attempt: Sendable {
    let step: Step
    let disturbed: Bool
}
