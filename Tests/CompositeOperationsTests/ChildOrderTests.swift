// ChildOrderTests - which child starts next: random registrations, ends and new attempts, checked against a plain list.

import CompositeOperations
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

/// Unlike the macro, works for calls that mutate their receiver.
private func expect(
    _ condition: Bool, _ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation
) {
    #expect(condition, comment, sourceLocation: sourceLocation)
}

private enum Event {
    case register
    /// The composite asks for the next child until there is none.
    case ask
    /// Finishes the child at this index among the children in flight, modulo their number.
    case finish(Int)
    /// Finishes by hand a child that is not in flight.
    case finishUnstarted(Int)
    case restart
}

private let events: Generator<Event> = .frequency([
    (5, .element(of: [.register])), (6, .element(of: [.ask])),
    (5, Generator.int(in: 0...9).map { .finish($0) }),
    (1, Generator.int(in: 0...9).map { .finishUnstarted($0) }),
    (1, .element(of: [.restart])),
])

/// The state machine under test, and the children as an external observer sees them.
private struct Trial {
    var machine: ChildOrder
    let width: Int
    var isFinished: [Bool] = []
    /// The children started in this attempt, in order.
    var started: [Int] = []
    var inFlight: Set<Int> = []
    var mostInFlight = 0
    var attempts = 1

    init(_ machine: ChildOrder, width: Int) {
        self.machine = machine
        self.width = width
    }

    var waiting: [Int] { isFinished.indices.filter { !isFinished[$0] && !started.contains($0) } }

    mutating func apply(_ event: Event, isCascade: Bool) {
        switch event {
        case .register: isFinished.append(false)
        case .ask: ask(isCascade)
        case .finish(let place):
            let candidates = inFlight.sorted()
            if !candidates.isEmpty { finish(candidates[place % candidates.count]) }
        case .finishUnstarted(let place):
            let candidates = waiting
            if !candidates.isEmpty { finish(candidates[place % candidates.count]) }
        case .restart:
            machine.restart()
            started = []
            inFlight = []
            attempts += 1
        }
    }

    private mutating func finish(_ child: Int) {
        isFinished[child] = true
        inFlight.remove(child)
        machine.finished(child)
    }

    private mutating func ask(_ isCascade: Bool) {
        let finished = isFinished
        while let child = machine.next(of: finished.count, isFinished: { finished[$0] }) {
            #expect(finished.indices.contains(child), "a child that was not registered")
            guard finished.indices.contains(child) else { return }
            #expect(!finished[child], "a finished child is not done again")
            #expect(!started.contains(child), "at most once per attempt")
            if isCascade {
                #expect(finished[..<child].allSatisfy { $0 }, "an earlier child has not finished")
            }
            if let last = started.last { #expect(child > last, "in the order of registration") }
            started.append(child)
            inFlight.insert(child)
            mostInFlight = max(mostInFlight, inFlight.count)
            #expect(inFlight.count <= width)
        }
        // No child was forgotten: a child waits only because there is no room.
        #expect(waiting.isEmpty || inFlight.count == width, "\(waiting) wait, and \(inFlight) are in flight")
    }

    /// Runs every registered child to its end.
    mutating func drain(isCascade: Bool) {
        for _ in 0...isFinished.count {
            apply(.ask, isCascade: isCascade)
            for child in inFlight.sorted() { finish(child) }
        }
        #expect(isFinished.allSatisfy { $0 }, "a child was never started")
    }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct ChildOrderTests {
    @Test func `a cascade starts each child after those before it, once per attempt, and forgets none`() async
    {
        await forAll(events.array(count: 0...80), cases: scaled(3_000)) { events in
            var trial = Trial(ChildOrder.cascade, width: 1)
            for event in events { trial.apply(event, isCascade: true) }
            trial.drain(isCascade: true)
        }
    }

    @Test func `a transaction starts each child once per attempt, within its width, and forgets none`() async
    {
        let width = Generator.frequency([
            (1, Generator<Int?>.element(of: [nil])), (4, Generator.int(in: 1...4).map { .some($0) }),
        ])
        await forAll(Generator.zip(events.array(count: 0...80), width), cases: scaled(3_000)) {
            events, width in
            var trial = Trial(ChildOrder(width: width), width: width ?? .max)
            for event in events { trial.apply(event, isCascade: false) }
            trial.drain(isCascade: false)
        }
    }

    @Test func `a cascade whose step was finished before its turn continues with the next step`() {
        var machine = ChildOrder.cascade
        var finished = [false, false, false]
        expect(machine.next(of: 3) { finished[$0] } == 0)
        finished[1] = true
        machine.finished(1)
        expect(machine.next(of: 3) { finished[$0] } == nil, "the first one is still under way")
        finished[0] = true
        machine.finished(0)
        expect(machine.next(of: 3) { finished[$0] } == 2)
    }

    @Test func `a new attempt of a transaction keeps its width and skips finished children`() {
        var machine = ChildOrder(width: 2)
        var finished = [false, false, false, false]
        expect(machine.next(of: 4) { finished[$0] } == 0)
        expect(machine.next(of: 4) { finished[$0] } == 1)
        expect(machine.next(of: 4) { finished[$0] } == nil)
        finished[0] = true
        machine.finished(0)
        machine.restart()
        expect(machine.next(of: 4) { finished[$0] } == 1)
        expect(machine.next(of: 4) { finished[$0] } == 2)
        expect(machine.next(of: 4) { finished[$0] } == nil)
    }
}
