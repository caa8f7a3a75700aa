// ReductionTests.swift - where tasks share only actors, fewer orders are run, and these still produce all outcomes.

import Glibc
import PropertyTesting
import PropertyTestingSupport
import Testing

/// Records its visitors, and lets tasks wait.
private actor Place {
    private(set) var log: [Int] = []
    private var isOpen = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func note(_ entry: Int) { log.append(entry) }
    func noteTwice(_ entry: Int) async {
        log.append(entry)
        await explorationPoint("in between")
        log.append(-entry)
    }
    func pass() async { if !isOpen { await withCheckedContinuation { waiting.append($0) } } }
    func open() {
        isOpen = true
        for one in waiting { one.resume() }
        waiting = []
    }
    /// Calls another actor from inside this one.
    func note(_ entry: Int, at other: Place) async {
        log.append(entry)
        await other.note(entry)
    }
}

/// An action of a task in a small program.
enum Action: Equatable, Sendable {
    case local, yields, note(Int), noteTwice(Int), noteAtBoth, pass, open, awaitFirst, group, lateGroup,
        detached, beside
}

/// Some tasks, which share two actors.
private struct Program: Sendable {
    let tasks: [[Action]]

    /// Runs the program, and reports the outcome.
    func run(_ tell: @escaping @Sendable ([[Int]]) -> Void) async {
        let places = [Place(), Place()]
        let first = Task.detached { await perform(tasks[0], as: 1, at: places, nil) }
        await withTaskGroup(of: Void.self) { group in
            for (number, actions) in tasks.enumerated().dropFirst() {
                group.addTask { await perform(actions, as: number + 1, at: places, first) }
            }
        }
        await first.value
        tell([await places[0].log, await places[1].log])
    }

    private func perform(_ actions: [Action], as task: Int, at places: [Place], _ first: Task<Void, Never>?)
        async
    {
        for action in actions {
            switch action {
            case .local: await explorationPoint("local")
            case .yields: await Task.yield()
            case .note(let place): await places[place].note(task)
            case .noteTwice(let place): await places[place].noteTwice(task)
            case .noteAtBoth: await places[0].note(task, at: places[1])
            case .pass: await places[0].pass()
            case .open: await places[0].open()
            case .awaitFirst:
                if let first {
                    await first.value
                    await places[1].note(task)
                }
            case .group:
                let order = await withTaskGroup(of: Int.self) { group in
                    for child in 1...2 {
                        group.addTask {
                            if child == 1 { await explorationPoint("child") }
                            return child
                        }
                    }
                    return await group.reduce(into: []) { $0.append($1) }
                }
                await places[0].note(task * 10 + order[0])
            case .lateGroup:
                // Both children may have ended before the group awaits one.
                let order = await withTaskGroup(of: Int.self) { group in
                    for child in 1...2 { group.addTask { child } }
                    await explorationPoint("late")
                    return await group.reduce(into: []) { $0.append($1) }
                }
                await places[0].note(task * 10 + order[0])
            case .beside:
                // Two calls are on their way to the second place.
                let child = Task.detached { await places[1].note(task * 10) }
                await places[0].note(task, at: places[1])
                await child.value
            case .detached:
                let child = Task.detached { await explorationPoint("child") }
                await explorationPoint("beside")
                await child.value
            }
        }
    }
}

@Suite(.inTurn, .watched(.seconds(240))) struct ReductionTests {
    /// Returns the outcomes found, and the number of schedules run; nil if there are too many.
    private func outcomes(of program: Program, _ sharing: Sharing) async -> (Set<[[Int]]>, count: Int)? {
        let outcomes = Locked<Set<[[Int]]>>([])
        let options = ExplorationOptions(departures: nil, limit: 1_200, random: 0, sharing: sharing)
        let outcome = await checkSchedules(options: options) {
            await program.run { outcome in outcomes.withLock { _ = $0.insert(outcome) } }
        }
        switch outcome {
        case .held(let coverage):
            return coverage.isComplete
                ? (outcomes.withLock { $0 }, coverage.schedules.reduce(0, +)) : nil
        case .failed(let failure):
            // Which order leads to the stuck state does not matter: the verdict is that one does.
            #expect(failure.reason == .stuck)
            return ([], 0)
        }
    }

    /// The number of programs; fewer under the sanitizers, where everything takes ten times as long.
    private var cases: Int {
        let scale = getenv("STRESS_SCALE").flatMap { Double(String(cString: $0)) } ?? 1
        return max(40, Int(410 * min(1, scale)))
    }

    @Test func `with only actors shared, the orders run have all outcomes`() async {
        let action = Generator<Action>.element(of: [
            .local, .yields, .local, .note(0), .note(1), .noteTwice(0), .noteAtBoth, .pass, .open,
            .awaitFirst, .group, .lateGroup, .detached, .beside,
        ])
        let programs = Generator<[[Action]]>.array(of: .array(of: action, count: 0...2), count: 2...3)
        let (compared, fewer, stuck) = (Locked(0), Locked(0), Locked(0))
        await forAll(programs, cases: cases) { tasks in
            // A stuck program is reported only after a while, because another thread could still make a task ready. So a few
            // such programs are enough.
            let actions = tasks.flatMap { $0 }
            if actions.contains(.pass), !actions.contains(.open),
                stuck.withLock({ stuck in
                    stuck += 1
                    return stuck > 10
                })
            {
                return
            }
            let program = Program(tasks: tasks)
            guard let all = await outcomes(of: program, .anything) else { return }
            guard let reduced = await outcomes(of: program, .actors) else {
                Issue.record("not complete, where all are")
                return
            }
            #expect(reduced.0 == all.0 && reduced.count <= all.count)
            compared.withLock { $0 += 1 }
            if reduced.count < all.count { fewer.withLock { $0 += 1 } }
        }
        #expect(compared.withLock { $0 } >= cases * 2 / 5)
        #expect(fewer.withLock { $0 } >= cases / 10)
    }

    @Test(arguments: [Action.lateGroup, .beside])
    func `ends and actor steps have orders where only actors are shared`(
        _ action: Action
    ) async throws {
        let program = Program(tasks: [[action]])
        let all = try #require(await outcomes(of: program, .anything))
        let reduced = try #require(await outcomes(of: program, .actors))
        #expect(all.0.count > 1 && reduced.0 == all.0)
    }

    @Test func `with only actors shared, a step that reads the time counts as differing`()
        async throws
    {
        let times = Locked<Set<Duration>>([])
        let clock = ExplorationClock()
        let coverage = try await covered(options: ExplorationOptions(sharing: .actors)) {
            async let time: Duration = {
                await explorationPoint("before")
                let time = clock.now.offset
                await explorationPoint("after")
                return time
            }()
            async let sleeping: Void = { try? await clock.sleep(for: .seconds(1)) }()
            let (read, _) = await (time, sleeping)
            times.withLock { _ = $0.insert(read) }
        }
        #expect(coverage.isComplete && times.withLock { $0 } == [.zero, .seconds(1)])
        #expect("\(coverage)".contains("schedules that differ"))
    }

    /// Programs most of whose steps are independent of each other.
    private static let programs: [[[Action]]] = [
        [[.local, .local, .local, .note(0)], [.local, .local, .local, .note(0)]],
        [[.note(0), .local, .yields], [.local, .note(0), .local]],
        [[.local, .local, .yields], [.local, .local, .note(1)], [.local]],
    ]

    @Test(arguments: [0, 1, 2]) func `steps that share nothing do not multiply`(_ number: Int) async throws {
        let program = Program(tasks: Self.programs[number])
        let counts = Locked<[Sharing: Int]>([:])
        for sharing in [Sharing.anything, .actors] {
            let coverage = try await covered(
                options: ExplorationOptions(departures: nil, limit: 100_000, random: 0, sharing: sharing)
            ) { await program.run { _ in } }
            #expect(coverage.isComplete || sharing == .anything)
            counts.withLock { $0[sharing] = coverage.schedules.reduce(0, +) }
        }
        let (all, reduced) = counts.withLock { ($0[.anything] ?? 0, $0[.actors] ?? 0) }
        #expect(reduced > 1 && all >= 10 * reduced, "\(all), \(reduced)")
    }
}
