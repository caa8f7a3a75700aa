// HotPathTests - the fast paths of DESIGN.md, section 4: a leaf that ends in one step, a turn that bypasses the queue,
// a step and its value in a single object, fixed-layout storage for values.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

/// Runs a closure on its release. If a block captured the object, that is when the block's captures are released.
private final class Farewell: Sendable {
    private let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    deinit { body() }
}

private struct Wide: Sendable, Equatable {
    var words: (UInt64, UInt64, UInt64) = (1, 2, 3)
    static func == (left: Wide, right: Wide) -> Bool { left.words == right.words }
}

private struct Nothing: Sendable, Equatable {}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct HotPathTests {
    // MARK: The turn in hand

    /// A cascade of two steps. The first one captures an object whose release calls `body`, with the cascade and the
    /// second step.
    private func farewell(
        secondOn target: (any ExecutionTarget)? = nil,
        _ body: @escaping @Sendable (COCascade<Int>, COOperation<Int>) -> Void,
        second: @escaping @Sendable () -> Int = { 2 }
    ) -> COCascade<Int> {
        let itself = Locked<COCascade<Int>?>(nil)
        let isThere = Gate()
        let cascade = cascadeOperation { cascade in
            let other = Locked<COOperation<Int>?>(nil)
            let farewell = Farewell {
                if let cascade = itself.withLock({ $0 }), let step = other.withLock({ $0 }) {
                    body(cascade, step)
                }
                other.withLock { $0 = nil }
                itself.withLock { $0 = nil }
            }
            cascade.operation(on: elsewhere) { isThere.wait() }
            cascade.operation { [farewell] in withExtendedLifetime(farewell) {} }
            let step = cascade.operation(on: target) { second() }
            other.withLock { $0 = step }
            return .value(of: step)
        }
        itself.withLock { $0 = cascade }
        isThere.open()
        return cascade
    }

    @Test func `a step's capture may wait, on its release, for the next step`() async throws {
        for target in [elsewhere, nil] as [(any ExecutionTarget)?] {
            let answers = Log<Bool>()
            let done = Gate()
            let cascade = farewell(secondOn: target) { _, step in
                answers.add(step.wait(timeout: testLimit * 0.5) != nil)
                done.open()
            }
            #expect(try await cascade.value == 2)
            await elsewhere.waits(for: done)
            #expect(answers.entries == [true], "\(target == nil ? "on the built-in scheduler" : "elsewhere")")
        }
    }

    @Test func `a step's capture may wait, on its release, for a thread woken by the next step`()
        async throws
    {
        let begun = Signal()
        let answers = Log<Bool>()
        let done = Gate()
        let cascade = farewell { _, _ in
            answers.add(begun.wait(atMost: testLimit * 0.75))  // the other worker may have much to do
            done.open()
        } second: {
            begun.signal()
            return 2
        }
        #expect(try await cascade.value == 2)
        await elsewhere.waits(for: done)
        #expect(answers.entries == [true])
    }

    @Test func `a step's capture cancels the cascade on its release: the next step does not run`()
        async
    {
        for _ in 0..<scaled(1_000) {
            let ran = Count()
            let cascade = farewell { cascade, _ in
                cascade.cancel()
            } second: {
                ran.add()
            }
            let outcome = await cascade.outcome
            // On another worker, the next step may have run before the cancel.
            #expect(outcome.isCancelled || ran.value == 1)
            if outcome.isFinished { #expect(ran.value == 1) }
        }
    }

    @Test
    func `a step's capture closes a gate on its release: the next step runs once, when it opens`()
        async throws
    {
        for opensAtOnce in [false, true] {
            for _ in 0..<scaled(500) {
                let ran = Count()
                let hasClosed = Gate()
                let cascade = farewell { cascade, step in
                    cascade.suspend()
                    step.suspend()
                    step.resume()
                    if opensAtOnce { cascade.resume() }
                    hasClosed.open()
                } second: {
                    ran.add()
                }
                await elsewhere.waits(for: hasClosed)
                if !opensAtOnce { cascade.resume() }
                #expect(try await cascade.value == 1)
                #expect(ran.value == 1)
            }
        }
    }

    /// Runs as many cascades as there are workers, and measures the largest number of handlers not yet called when a
    /// step begins.
    @Test func `steps without an end do not delay the handlers of earlier ones`() async throws {
        let steps = scaled(100_000)
        let worst = Locked(0)
        let cascades = (0..<Scheduler.shared.workers).map { _ in
            let handled = Count()
            @Sendable func step(_ scope: CascadeScope, _ number: Int) {
                let lag = number - handled.value
                worst.withLock { $0 = max($0, lag) }
                if number == steps { return }
                scope.operation { step(scope, number + 1) }.onOutcome { _ in handled.add() }
            }
            return cascadeOperation { step($0, 0) }
        }
        for cascade in cascades { try await cascade.value }
        let lag = worst.withLock { $0 }
        #expect(lag < steps / 4, "\(lag) of \(steps)")
    }

    // MARK: A step that takes a value

    @Test func `a step that takes a value runs the block that was set in place of its own, or none`()
        async throws
    {
        for isRemoved in [false, true] {
            let ran = Count()
            let isPrepared = Gate()
            let letter = Mail<COOperation<Int>>()
            let cascade = cascadeOperation { cascade in
                cascade.operation(on: elsewhere) { isPrepared.wait() }
                let first = cascade.operation { 1 }
                let second = cascade.operation(using: first) { (value: Int) -> Int in
                    ran.add()
                    return value + 1
                }
                letter.send(second.operation)
                return .value(of: second)
            }
            let second = await letter.next()
            let other: COOperation<Int>.Block = { $0.finish(10) }
            second.operation = isRemoved ? nil : other
            isPrepared.open()
            if isRemoved {
                #expect(await eventually { second.numberOfRuns == 1 })
                #expect(second.finish(10))
            }
            #expect(try await cascade.value == 10)
            #expect(ran.value == 0, "\(isRemoved ? "none" : "replaced")")
        }
    }

    @Test func `a step that takes a value releases block and source: run, cancelled, refused`() async {
        enum Way: CaseIterable { case run, cancelled, refused }
        for way in Way.allCases {
            let released = Count()
            let isPrepared = Gate()
            let kept = Log<AnyOperation>()
            let cascade = cascadeOperation { cascade in
                let token = Token(released)
                let value = Token(released)
                cascade.operation(on: elsewhere) { isPrepared.wait() }
                let stranger = COOperation<Token>()
                let first = way == .refused ? stranger : cascade.operation { value }
                kept.add(
                    cascade.operation(using: first) { [token] (_: Token) in withExtendedLifetime(token) {} })
                if way == .refused {
                    #expect(stranger.finish(value))
                }
                if way == .cancelled { cascade.cancel() }
            }
            isPrepared.open()
            _ = await cascade.outcome
            #expect(await eventually { released.value == 2 }, "\(way)")
            withExtendedLifetime(kept) {}
        }
    }

    @Test
    func `a long chain of steps that take values, cancelled before they run, is released on a small stack`()
        async
    {
        let steps = scaled(100_000)
        let released = Count()
        let last = Locked<AnyOperation?>(nil)
        let cascade = cascadeOperation { cascade in
            var step = cascade.operation { 0 }
            for _ in 0..<steps {
                let token = Token(released)
                step = cascade.operation(using: step) { [token] value in
                    withExtendedLifetime(token) { value + 1 }
                }
            }
            last.withLock { $0 = step.operation }
            cascade.cancel()
        }
        #expect(await cascade.outcome.isCancelled)
        await onSmallStack { last.withLock { $0 = nil } }
        #expect(await eventually { released.value == steps })
    }

    @Test func `a step of another composite is not one of this one, at any index`() async {
        let strangers = Locked<[COOperation<Int>]>([])
        let other = cascadeOperation { cascade in
            let steps = (0..<10).map { number in cascade.operation { number }.operation }
            strangers.withLock { $0 = steps }
        }
        _ = await other.outcome
        for stranger in strangers.withLock({ $0 }) {
            let refused = Log<AnyOperation>()
            let cascade = cascadeOperation { cascade in
                for _ in 0..<4 { cascade.operation { 1 } }
                refused.add(cascade.operation(using: stranger) { $0 })
            }
            _ = await cascade.outcome
            #expect(refused.entries[0].isFailed)
        }
    }

    // MARK: Values

    // Not called with a value that has an alignment of 64 bytes (SIMD8<Double>): with one, the optimised build of this
    // test corrupts the memory of its task, for a reason not yet known. A separate program that does the same does not.
    private func travels<Value: Sendable & Equatable>(_ value: Value) async throws {
        let single = try await operation { value }.value
        #expect(single == value)
        let byHand = COOperation<Value>()
        #expect(byHand.finish(value))
        #expect(!byHand.finish(value))
        let result = try byHand.result?.get()
        #expect(result == value)
        let ofCascade = try await cascadeOperation { cascade in
            let first = cascade.operation { value }
            let second = cascade.operation(using: first) { $0 }
            let third = cascade.operation(using: second) { (value: Value) async throws -> Value in value }
            return .value(of: third)
        }.value
        #expect(ofCascade == value)
        let ofGroup = try await transactionalOperation { group in
            .values(of: (0..<3).map { _ in group.operation { value } })
        }.value
        #expect(ofGroup == [value, value, value])
    }

    @Test func `values of all sizes and alignments come through`() async throws {
        try await travels(Nothing())
        try await travels(true)
        try await travels(Int?.none)
        try await travels(Int?.some(7))
        try await travels(UInt64.max)
        try await travels("a text that is too long to be a part of its own two words")
        try await travels(String?.none)
        try await travels([1, 2, 3])
        try await travels(1 as Int128)
        try await travels(SIMD2<Double>(1, 2))
        try await travels(Wide())
        try await travels([Wide?.some(Wide()), nil])
    }

    @Test func `a value is released once, with the last handle, whatever its size`() async throws {
        struct Large: Sendable { let first: Token, second: Token, third: Token }
        let released = Count()
        for way in 0..<3 {
            let before = released.value
            var small: COOperation<Token>? = COOperation()
            var large: COOperation<Large>? = COOperation()
            let make: @Sendable () -> Large = {
                Large(first: Token(released), second: Token(released), third: Token(released))
            }
            switch way {
            case 0:
                small?.finish(Token(released))
                large?.finish(make())
            case 1:
                small = operation { Token(released) }
                large = operation { make() }
            default:
                // A value that comes too late is not stored.
                small?.finish(Token(released))
                small?.finish(Token(released))
                #expect(released.value == before + 1)
                large?.cancel()
                large?.finish(make())
                #expect(released.value == before + 4)
            }
            _ = await small?.outcome
            _ = await large?.outcome
            small = nil
            large = nil
            let expected = way == 2 ? 5 : 4
            #expect(await eventually { released.value == before + expected }, "\(way)")
        }
    }
}

/// Signals an event to one thread, which waits with a time limit.
private final class Signal: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)
    func signal() { semaphore.signal() }
    func wait(atMost limit: Duration) -> Bool {
        semaphore.wait(timeout: .now() + .seconds(Int(limit.components.seconds))) == .success
    }
}
