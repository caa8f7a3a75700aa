// ExplorationSubjects.swift - small concurrent types, each with and without a fault, and helpers for the tests of exploration.

import PropertyTesting
import Testing

/// The latch may open between the check and the wait.
actor LostWakeup {
    private var isOpen = false
    private var waiter: CheckedContinuation<Void, Never>?
    private let looksAgain: Bool
    init(looksAgain: Bool) { self.looksAgain = looksAgain }

    func wait() async {
        if isOpen { return }
        await explorationPoint("looked")
        if looksAgain, isOpen { return }
        await withCheckedContinuation { waiter = $0 }
    }

    func open() {
        isOpen = true
        waiter?.resume()
        waiter = nil
    }
}

actor Audit {
    private var entries = 0
    func enter() { entries += 1 }
}

/// Sells one item twice: another buyer may come while the audit is written.
actor Stock {
    private var left = 1
    private let sellsFirst: Bool
    init(sellsFirst: Bool) { self.sellsFirst = sellsFirst }

    func take(_ audit: Audit) async -> Bool {
        guard left > 0 else { return false }
        if sellsFirst { left -= 1 }
        await audit.enter()
        if !sellsFirst { left -= 1 }
        return true
    }
}

actor TaskLock {
    private var isTaken = false
    private var waiters: [CheckedContinuation<Void, Never>] = []

    func lock() async {
        if !isTaken {
            isTaken = true
            return
        }
        await withCheckedContinuation { waiters.append($0) }
    }

    func unlock() {
        if waiters.isEmpty { isTaken = false } else { waiters.removeFirst().resume() }
    }
}

struct Oversold: Error {}

/// Bodies, each with and without its fault.
enum Subject: CaseIterable {
    case lostWakeup, overselling, deadlock

    /// The body, which fails in some orders if it `isFaulty`.
    func body(isFaulty: Bool) -> @Sendable () async throws -> Void {
        switch self {
        case .lostWakeup:
            {
                let latch = LostWakeup(looksAgain: !isFaulty)
                async let waiting: Void = latch.wait()
                async let opening: Void = latch.open()
                _ = await (waiting, opening)
            }
        case .overselling:
            {
                let stock = Stock(sellsFirst: !isFaulty), audit = Audit()
                async let first = stock.take(audit)
                async let second = stock.take(audit)
                if await first, await second { throw Oversold() }
            }
        case .deadlock:
            {
                let left = TaskLock(), right = TaskLock()
                @Sendable func both(_ first: TaskLock, _ second: TaskLock) async {
                    await first.lock()
                    await second.lock()
                    await second.unlock()
                    await first.unlock()
                }
                async let one: Void = both(left, right)
                async let two: Void = isFaulty ? both(right, left) : both(left, right)
                _ = await (one, two)
            }
        }
    }
}

struct NothingFound: Error {}

/// Returns the failing schedule. Records an issue if there is none.
func failing(
    options: ExplorationOptions = ExplorationOptions(), _ body: @escaping @Sendable () async throws -> Void,
    sourceLocation: SourceLocation = #_sourceLocation
) async throws -> FailingSchedule {
    let outcome = await checkSchedules(options: options, body)
    if case .failed(let failure) = outcome { return failure }
    Issue.record("\(outcome)", sourceLocation: sourceLocation)
    throw NothingFound()
}

/// Returns the coverage of a body that holds. Records an issue if the body fails.
func covered(
    options: ExplorationOptions = ExplorationOptions(), _ body: @escaping @Sendable () async throws -> Void,
    sourceLocation: SourceLocation = #_sourceLocation
) async throws -> ExplorationCoverage {
    let outcome = await checkSchedules(options: options, body)
    if case .held(let coverage) = outcome { return coverage }
    Issue.record("\(outcome)", sourceLocation: sourceLocation)
    throw NothingFound()
}

/// The orders in which two tasks log their steps.
func twoTasks(steps: Int, into orders: Locked<[[Int]]>) -> @Sendable () async -> Void {
    {
        let order = Locked<[Int]>([])
        @Sendable func go(_ task: Int) async {
            for step in 0..<steps {
                if step > 0 { await Task.yield() }
                order.withLock { $0.append(task) }
            }
        }
        async let first: Void = go(1)
        async let second: Void = go(2)
        _ = await (first, second)
        orders.withLock { orders in orders.append(order.withLock { $0 }) }
    }
}
