// OperationMachineTests - the pure state machine of one operation: random events against its transition table.
//
// The table, and the counts kept alongside it, are written here a second time, from the specification. An event that
// the table refuses changes nothing; an accepted event leads where the table says.

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

private typealias Machine = OperationMachine
private typealias Phase = OperationMachine.Phase

/// The caller: a holder of the handle, of the current attempt's token, or of the token of an earlier attempt.
private enum Who: CaseIterable {
    case handle, current, old

    func number(_ attempt: Int32) -> Int32? {
        switch self {
        case .handle: nil
        case .current: attempt
        case .old: attempt - 1
        }
    }
}

private enum Event {
    case start, post, refusal, leave, childBegins, childLeaves, settle, ask, begin, suspend, resume, openAtEnd
    case turn(gateIsOpen: Bool)
    case decide(Machine.End, Who)
    /// The block returns and thereby finishes the attempt, in one step.
    case leaveFinished(Who)
    case redo(Machine.Redo, paused: Bool, Who)
    case reawaken(Machine.Redo)
    case pauseIsOver(Who)
    case proceed(gateIsOpen: Bool)
    /// Any step that brings the machine nearer to its next block.
    case advance
}

private let events: Generator<Event> = {
    let who = Generator.element(of: Who.allCases)
    let end = Generator.element(of: [Machine.End.finished, .failed, .cancelled])
    let how = Generator.element(of: [Machine.Redo.rerun, .awake])
    let single: [(Int, Event)] = [
        (3, .start), (6, .post), (1, .refusal), (4, .leave), (2, .childBegins), (2, .childLeaves),
        (3, .settle),
        (3, .ask), (3, .begin), (2, .suspend), (2, .resume), (1, .openAtEnd), (30, .advance),
    ]
    return .frequency(
        single.map { (weight: $0.0, generator: .element(of: [$0.1])) } + [
            (6, Generator.bool.map { .turn(gateIsOpen: !$0) }),
            (3, Generator.zip(end, who).map { .decide($0, $1) }),
            (2, who.map { .leaveFinished($0) }),
            (4, Generator.zip(how, .zip(.bool, who)).map { .redo($0, paused: $1.0, $1.1) }),
            (3, how.map { .reawaken($0) }),
            (3, who.map { .pauseIsOver($0) }),
            (6, Generator.bool.map { .proceed(gateIsOpen: !$0) }),
        ])
}()

/// The observable state of a machine.
private struct Sight: Equatable {
    var phase: Phase
    var end: Machine.End
    var isGateClosed, isPosted, isPaused, isAwakening, isHeldBack, isLive, isOut: Bool
    var attempt, runs, pending: Int32

    init(_ machine: Machine) {
        phase = machine.phase
        end = machine.end
        isGateClosed = machine.isGateClosed
        isPosted = machine.isPosted
        isPaused = machine.isPaused
        isAwakening = machine.isAwakening
        isHeldBack = machine.isHeldBack
        isLive = machine.isLive
        isOut = machine.isOut
        attempt = machine.attempt
        runs = machine.runs
        pending = machine.pending
    }
}

/// The machine under test, and the counts of an external observer.
private struct Trial {
    var machine = Machine()
    /// Turns that were sent and have not arrived.
    var posted = 0
    var begun: Int32 = 0
    var out: Int32 = 0
    var children: Int32 = 0
    /// Accepted ends, minus the ones that were undone.
    var decisions = 0
    var isLive = false
    var hasBeenTerminal = false
    var seen: Set<Phase> = []

    /// The phases that an accepted event may lead to, by phase.
    static let table: [Phase: Set<Phase>] = [
        .ready: [.queued, .ending],
        .queued: [.executing, .ending],
        .executing: [.deciding, .delayed, .ending, .finished],
        .deciding: [.delayed, .ending],
        .delayed: [.queued, .executing, .ending],
        .ending: [.finished, .failed, .cancelled, .ready, .delayed],
        .finished: [], .failed: [], .cancelled: [],
    ]

    static let live: Set<Phase> = [.ready, .queued, .executing, .deciding, .delayed]

    /// The event that ``Event/advance`` stands for.
    private var step: Event {
        switch machine.phase {
        case .ready: .start
        case .queued: posted == 0 ? .post : .turn(gateIsOpen: true)
        case .delayed where out > 0: .leave
        case .delayed where children > 0: .childLeaves
        case .delayed where machine.isPaused: .pauseIsOver(.current)
        case .delayed where machine.isHeldBack: .begin
        case .delayed: .proceed(gateIsOpen: true)
        case .executing: .redo(.rerun, paused: false, .current)
        case .deciding: .redo(.awake, paused: false, .handle)
        case .ending where out > 0: .leave
        case .ending, .finished, .failed, .cancelled: .childLeaves
        }
    }

    mutating func apply(_ event: Event) throws {
        if case .advance = event { return try apply(step) }
        let before = Sight(machine)
        let isAccepted = try happen(event, before)
        let after = Sight(machine)
        seen.insert(after.phase)

        if !isAccepted { #expect(after == before, "a refused \(event) has changed something") }
        if after.phase != before.phase {
            let reachable = try #require(Self.table[before.phase])
            #expect(reachable.contains(after.phase), "\(before.phase) -> \(after.phase) by \(event)")
        }
        // I1
        #expect(decisions == (machine.isDecided ? 1 : 0))
        // I2
        #expect(after.attempt >= before.attempt)
        #expect(after.attempt <= before.attempt + 1)
        #expect((after.attempt == 0) == (after.runs == 0 && after.attempt < 1))
        // I3
        #expect(machine.pending == (isLive ? 1 : 0) + out + children)
        #expect(machine.pending >= 0)
        #expect(machine.isLive == isLive && machine.isOut == (out == 1))
        #expect(machine.isQuiescent == (machine.pending == 0))
        // I4
        #expect(machine.runs == begun)
        if machine.isPosted { #expect(machine.phase == .queued) }
        #expect(machine.isPosted == (posted == 1))
        // I5
        if hasBeenTerminal { #expect(after.phase == before.phase) }
        hasBeenTerminal = machine.isTerminal
        checkLabels()
    }

    /// Applies the event, unless no caller would issue it now, and checks the answer.
    ///
    /// - Returns: whether it was accepted.
    private mutating func happen(_ event: Event, _ before: Sight) throws -> Bool {
        let phase = before.phase
        let isLivePhase = Self.live.contains(phase)
        switch event {
        case .start:
            let answer = machine.start()
            #expect(answer == (phase == .ready))
            if answer { #expect(machine.phase == .queued && machine.attempt == max(1, before.attempt)) }
            return answer

        case .post:
            let isDue = machine.isDue(gateIsOpen: true)
            #expect(isDue == (phase == .queued && posted == 0))
            #expect(!machine.isDue(gateIsOpen: false), "a closed gate holds everything")
            guard isDue else { return false }
            machine.post()
            posted += 1
            return true

        case .turn(let gateIsOpen):
            let answer = machine.turn(gateIsOpen: gateIsOpen)
            guard phase == .queued, posted == 1 else {
                #expect(answer == .isVoid, "a block begins only after a turn was sent, and once")
                return false
            }
            posted = 0
            #expect(answer == (gateIsOpen ? .begins : .waits))
            if answer == .begins {
                #expect(machine.phase == .executing && machine.attempt == before.attempt)
                begun += 1
                out += 1
                isLive = true
            } else {
                #expect(machine.phase == .queued)
            }
            return true

        case .refusal:
            let answer = machine.turnIsRefused()
            #expect(answer == (phase == .queued && posted == 1))
            if answer { posted = 0 }
            return answer

        case .leave:
            guard out > 0 else { return false }
            machine.leave()
            out -= 1
            expect(machine.letGo() == (out + children + (isLive ? 1 : 0) == 0))
            return true

        case .childBegins:
            expect(machine.hold() == (before.pending == 0))
            children += 1
            return true

        case .childLeaves:
            guard children > 0 else { return false }
            children -= 1
            expect(machine.letGo() == (out + children + (isLive ? 1 : 0) == 0))
            return true

        case .decide(let end, let who):
            let number = who.number(before.attempt)
            #expect(
                machine.canEnd(number)
                    == (isLivePhase && (phase != .deciding || who == .handle) && who != .old))
            let freed = machine.decide(end, number: number)
            // While a decision is pending, the attempt is over for its own token: only the handle may end the
            // operation.
            let isEntitled = who == .handle || (who == .current && phase != .deciding)
            #expect((freed != nil) == (isLivePhase && isEntitled))
            guard let freed else { return false }
            #expect(freed == (isLive ? 1 : 0), "the attempt counts until its end, once")
            #expect(machine.phase == .ending && machine.end == end)
            if freed > 0 { _ = machine.letGo(freed) }
            isLive = false
            posted = 0
            decisions += 1
            return true

        case .leaveFinished(let who):
            // The slow path, with nothing intervening between its steps: the end, the return, the outcome.
            var expected = machine
            let number = who.number(before.attempt) ?? before.attempt
            let isAlone = phase == .executing && isLive && out == 1 && children == 0
            let answer = machine.leaveFinished(number: number)
            #expect(answer == (isAlone && who != .old && !before.isGateClosed))
            guard answer else { return false }
            expect(expected.decide(.finished, number: number) == 1)
            expected.leave()
            expect(expected.letGo(2))
            expected.settle()
            #expect(Sight(machine) == Sight(expected))
            isLive = false
            out = 0
            decisions += 1
            return true

        case .settle:
            guard phase == .ending, before.pending == 0 else { return false }
            machine.settle()
            let expected: Phase =
                switch before.end {
                case .finished: .finished
                case .failed: .failed
                case .cancelled: .cancelled
                }
            #expect(machine.phase == expected)
            return true

        case .ask:
            let answer = machine.ask()
            #expect(answer == (phase == .executing))
            return answer

        case .redo(let how, let paused, let who):
            let freed = machine.redo(how, paused: paused, number: who.number(before.attempt))
            let isLegal = phase == .deciding || (phase == .executing && how == .rerun)
            #expect((freed != nil) == (isLegal && who != .old))
            guard let freed else { return false }
            #expect(freed == 1 && isLive, "there is an attempt to give up")
            #expect(machine.phase == .delayed && machine.attempt == before.attempt + 1)
            #expect(machine.isPaused == paused)
            _ = machine.letGo(freed)
            isLive = false
            return true

        case .reawaken(let how):
            guard phase == .ending, before.end != .finished else { return false }
            machine.reawaken(how)
            decisions -= 1
            if begun == 0 {
                #expect(machine.phase == .ready && machine.attempt == before.attempt)
            } else {
                #expect(machine.phase == .delayed && machine.attempt == before.attempt + 1)
            }
            return true

        case .begin:
            let answer = machine.begin()
            #expect(answer == (phase == .ready || (phase == .delayed && before.isHeldBack)))
            #expect(!answer || !machine.isHeldBack)
            return answer

        case .pauseIsOver(let who):
            let number = who.number(before.attempt) ?? before.attempt
            let answer = machine.pauseIsOver(number: number)
            #expect(answer == (phase == .delayed && before.isPaused && who != .old))
            return answer

        case .proceed(let gateIsOpen):
            let answer = machine.proceed(gateIsOpen: gateIsOpen)
            let isFree = phase == .delayed && !before.isPaused && !before.isHeldBack && before.pending == 0
            if !isFree || (before.isAwakening && !gateIsOpen) {
                #expect(answer == .waits)
                return false
            }
            if before.isAwakening {
                #expect(answer == .executing && machine.phase == .executing)
                isLive = true
            } else {
                #expect(answer == .queued && machine.phase == .queued)
            }
            #expect(machine.attempt == before.attempt)
            return true

        case .suspend:
            let answer = machine.suspend()
            #expect(answer == (isLivePhase && !before.isGateClosed))
            return answer

        case .resume:
            let answer = machine.resume()
            #expect(answer == (isLivePhase && before.isGateClosed))
            return answer

        case .advance: return false

        case .openAtEnd:
            guard machine.isTerminal else { return false }
            expect(machine.openAtEnd() == before.isGateClosed)
            #expect(!machine.isGateClosed)
            return true
        }
    }

    private func checkLabels() {
        let open: [Phase: OperationState] = [
            .ready: .ready, .queued: .queued, .executing: .executing, .deciding: .deciding,
            .delayed: .delayed,
            .ending: .ending, .finished: .finished, .failed: .failed, .cancelled: .cancelled,
        ]
        let canBeSuspended: Set<Phase> = [.ready, .queued, .executing, .delayed]
        #expect(machine.state(gateIsOpen: true) == open[machine.phase])
        let label = machine.state(gateIsOpen: false)
        #expect(label == (canBeSuspended.contains(machine.phase) ? .suspended : open[machine.phase]))
    }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct OperationMachineTests {
    @Test(.promises("G39")) func `random events respect the table and the invariants`() async {
        await forAll(
            events.array(count: 0...120), cases: scaled(500),
            covering: [
                .cover(20, "it is redone") { Self.run($0)?.machine.attempt ?? 0 > 1 },
                .cover(10, "it is decided upon") { Self.run($0)?.seen.contains(.deciding) ?? false },
                .cover(10, "it settles") { Self.run($0)?.machine.isTerminal ?? false },
                .cover(10, "two blocks run") { Self.run($0)?.machine.runs ?? 0 > 1 },
            ]
        ) { events in
            var trial = Trial()
            for event in events { try trial.apply(event) }
        }
    }

    private static func run(_ events: [Event]) -> Trial? {
        var trial = Trial()
        for event in events { try? trial.apply(event) }
        return trial
    }

    @Test(.promises("G39")) func `a terminal machine refuses every event`() {
        for end in [OperationMachine.End.finished, .failed, .cancelled] {
            var machine = OperationMachine()
            _ = machine.decide(end)
            machine.settle()
            let phase = machine.phase
            let number = machine.attempt
            expect(!machine.start())
            expect(machine.turn(gateIsOpen: true) == .isVoid)
            expect(!machine.turnIsRefused())
            expect(machine.decide(.cancelled) == nil)
            expect(!machine.ask())
            expect(machine.redo(.rerun, paused: false) == nil)
            expect(machine.redo(.awake, paused: false) == nil)
            expect(!machine.begin())
            expect(!machine.pauseIsOver(number: number))
            expect(machine.proceed(gateIsOpen: true) == .waits)
            expect(!machine.suspend())
            expect(!machine.resume())
            #expect(machine.phase == phase && machine.attempt == number)
        }
    }

    @Test(.promises("G22")) func `of any two ends, in any state, the first one counts`() async {
        let end = Generator.element(of: [OperationMachine.End.finished, .failed, .cancelled])
        await forAll(Generator.zip(events.array(count: 0...40), .zip(end, end)), cases: scaled(500)) {
            value in
            var trial = Trial()
            for event in value.0 { try trial.apply(event) }
            guard !trial.machine.isDecided else { return }
            try trial.apply(.decide(value.1.0, .handle))
            try trial.apply(.decide(value.1.1, .handle))
            try trial.apply(.decide(value.1.1, .current))
            #expect(trial.machine.end == value.1.0)
        }
    }

    /// Random events rarely hit these moments.
    @Test func `an attempt that is over ends nothing: not by its token, its pause or its block's return`() {
        var machine = OperationMachine()
        _ = machine.start()
        machine.post()
        expect(machine.turn(gateIsOpen: true) == .begins)
        expect(machine.ask())
        expect(machine.decide(.finished, number: 1) == nil, "a decision is open: the attempt is over")
        expect(machine.canEnd(nil) && !machine.canEnd(1))

        expect(machine.redo(.rerun, paused: true, number: 1) == 1)
        machine.leave()
        expect(machine.letGo(2))
        expect(!machine.pauseIsOver(number: 1) && machine.isPaused)
        expect(machine.decide(.finished, number: 1) == nil)
        expect(machine.pauseIsOver(number: 2))
        expect(machine.proceed(gateIsOpen: true) == .queued)

        machine.post()
        expect(machine.turn(gateIsOpen: true) == .begins)
        expect(!machine.leaveFinished(number: 1) && machine.phase == .executing)
        _ = machine.suspend()
        expect(!machine.leaveFinished(number: 2), "its gate has to be opened, and that to be told")
        _ = machine.resume()
        _ = machine.hold()  // something below it is unfinished
        expect(!machine.leaveFinished(number: 2))
        _ = machine.letGo()
        expect(machine.leaveFinished(number: 2) && machine.isTerminal && machine.isQuiescent)
    }

    /// A machine held back by a pause, its old block and a hold proceeds exactly when the last of them is gone.
    @Test func `a delayed machine proceeds when pause, blocks and hold are over, in any order`() async {
        for order in Self.permutations([0, 1, 2]) {
            var machine = OperationMachine()
            _ = machine.start()
            machine.post()
            expect(machine.turn(gateIsOpen: true) == .begins)
            _ = machine.hold()  // a child
            expect(machine.redo(.rerun, paused: true) == 1)
            _ = machine.letGo()
            for (place, step) in order.enumerated() {
                expect(machine.proceed(gateIsOpen: true) == .waits)
                switch step {
                case 0: expect(machine.pauseIsOver(number: 2))
                case 1:
                    machine.leave()
                    _ = machine.letGo()
                default: _ = machine.letGo()
                }
                #expect(machine.isPaused == !order[...place].contains(0))
            }
            expect(
                machine.proceed(gateIsOpen: false) == .queued, "the gate is before the turn, not before this")
            expect(machine.proceed(gateIsOpen: true) == .waits, "once")
        }
    }

    private static func permutations(_ values: [Int]) -> [[Int]] {
        if values.count < 2 { return [values] }
        return values.flatMap { value in permutations(values.filter { $0 != value }).map { [value] + $0 } }
    }
}
