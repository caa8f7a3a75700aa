// BatchTimeTests.swift - random programs for an invoker in batches, on a clock that the program moves. A pure model predicts
// which commands have run after each step, and in which order.

import Commands
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

private enum Step: Sendable, CustomStringConvertible {
    case add(cost: Int)
    case advance(Int)
    case cancel(Int)
    case flush

    static let any: Generator<Step> = .frequency([
        (6, Generator<Int>.int(in: 0...4).map { .add(cost: $0) }),
        (3, Generator<Int>.int(in: 1...6).map { .advance($0) }),
        (2, Generator<Int>.int(in: 0...9).map { .cancel($0) }), (1, Generator { _ in .flush }),
    ])

    var description: String {
        switch self {
        case .add(let cost): "add \(cost)"
        case .advance(let time): "advance \(time)"
        case .cancel(let index): "cancel \(index)"
        case .flush: "flush"
        }
    }
}

private struct Settings: Sendable, CustomStringConvertible {
    var size: Int
    var maxDelay: Int?
    var maxCost: Int?

    static let any = Generator<(Int, (Int?, Int?))>.zip(
        .int(in: 1...4), .zip(Generator<Int>.int(in: 1...5).optional, Generator<Int>.int(in: 1...6).optional)
    ).map { Settings(size: $0, maxDelay: $1.0, maxCost: $1.1) }

    var description: String {
        "size \(size), delay \(maxDelay.map { "\($0)" } ?? "none"), cost \(maxCost.map { "\($0)" } ?? "any")"
    }
}

/// The commands that should have run. Commands end at once, so a batch is over before the next step.
private struct Model {
    let settings: Settings
    private var gathering: [(number: Int, cost: Int)] = []
    private var count = 0
    private var now = 0
    /// The time at which the first gathered command became the first.
    private var since = 0
    private(set) var ran: [Int] = []

    init(_ settings: Settings) { self.settings = settings }

    var waiting: [Int] { gathering.map(\.number) }
    var hasTimer: Bool { settings.maxDelay != nil && !gathering.isEmpty }

    mutating func add(cost: Int) {
        gathering.append((count, cost))
        count += 1
        if gathering.count == 1 { since = now }
        cut()
    }

    mutating func advance(_ time: Int) {
        now += time
        if let delay = settings.maxDelay, let first = gathering.first, now >= since + delay {
            cut(upTo: first.number)
        }
    }

    mutating func cancel(_ number: Int) {
        let isFirst = gathering.first?.number == number
        gathering.removeAll { $0.number == number }
        if isFirst { since = now }
    }

    mutating func flush() { cut(upTo: count) }

    /// Cuts batches while enough commands have been gathered, or while a command up to `forced` has not run.
    private mutating func cut(upTo forced: Int = -1) {
        let most = settings.maxCost ?? .max
        while let first = gathering.first {
            let total = gathering.reduce(0) { $0 + $1.cost }
            guard gathering.count >= settings.size || total >= most || first.number <= forced else { return }
            var cost = 0
            var batch = 0
            for each in gathering.prefix(settings.size) {
                if batch > 0, cost + each.cost > most { break }
                cost += each.cost
                batch += 1
            }
            ran += gathering.prefix(batch).map(\.number)
            gathering.removeFirst(batch)
            since = now
        }
    }
}

private struct Priced: SynchronousCommand {
    let number: Int
    let cost: Int
    let log: Log<Int>
    func execute(_ context: CommandContext) { log.add(number) }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing)
struct BatchTimeTests {
    @Test(.promises("B7"))
    func `B7: in virtual time, batch cuts by number, cost, delay and flush match a model`() async {
        await forAll(.zip(Settings.any, Step.any.array(count: 0...25)), cases: 150) { settings, steps in
            let clock = ManualClock(), log = Log<Int>()
            let invoker = BatchInvoker(
                size: settings.size, maxDelay: settings.maxDelay.map { .seconds($0) },
                maxCost: settings.maxCost, cost: { ($0 as? Priced)?.cost ?? 0 }, clock: clock)
            var model = Model(settings)
            var handles: [CommandHandle<Void>] = []
            for step in steps {
                switch step {
                case .add(let cost):
                    handles.append(invoker.submit(Priced(number: handles.count, cost: cost, log: log)))
                    model.add(cost: cost)
                case .advance(let time):
                    clock.advance(by: .seconds(time))
                    model.advance(time)
                case .cancel(let index):
                    guard !handles.isEmpty else { continue }
                    handles[index % handles.count].cancel()
                    model.cancel(index % handles.count)
                case .flush:
                    try await invoker.flush()
                    model.flush()
                }
                for number in model.ran { _ = await handles[number].outcome }
                // An outcome can be read before the invoker has counted it.
                try #require(await eventually { invoker.count == model.waiting.count })
                try #require(log.entries == model.ran)
                for number in model.waiting { try #require(handles[number].result == nil) }
                // The invoker's timer is a task, which must have reached its sleep before time may advance.
                try #require(await eventually { clock.sleepers == (model.hasTimer ? 1 : 0) })
            }
            await invoker.shutdown(.run)
            try #require(log.entries == model.ran + model.waiting)
        }
    }
}
