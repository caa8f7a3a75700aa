// Transactional operations complete after their block and all children, whose writes are then visible: G18.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct TransactionTests {
    /// No lock: each child writes its own slot, and only the transaction orders the writes before the end.
    private final class Unguarded: @unchecked Sendable {
        // Unchecked, because the ordering is under test.
        let values: UnsafeMutableBufferPointer<Int>
        init(_ count: Int) {
            values = .allocate(capacity: count)
            values.initialize(repeating: 0)
        }
        deinit { values.deallocate() }
    }

    @Test(.promises("G18")) func `a transaction does not complete before its block has returned`()
        async throws
    {
        for isWide in [true, false] {
            let (gate, completions) = (Gate(), Count())
            let ended = Locked<[COOperation<Void>]>([])
            let group = transactionalOperation(
                on: elsewhere, options: OperationOptions(width: isWide ? nil : 1)
            ) { group in
                for _ in 0..<5 {
                    let child = group.operation {}
                    ended.withLock { $0.append(child.operation) }
                }
                // All children so far end before the block returns.
                for child in ended.withLock({ $0 }) { _ = child.wait() }
                gate.wait()
                let last = group.operation {}
                ended.withLock { $0.append(last.operation) }
            } completion: {
                completions.add()
            }
            #expect(await eventually { ended.withLock { $0.count == 5 && $0.allSatisfy(\.isEnded) } })
            #expect(group.state == .executing && !group.isFinished && completions.value == 0)
            gate.open()
            try await group.value
            #expect(ended.withLock { $0.count == 6 && $0.allSatisfy(\.isEnded) })
            #expect(await eventually { completions.value == 1 })
        }
    }

    @Test(.promises("G18"))
    func `a transaction ends after all children, and their writes are visible then`() async {
        let children = Generator<[Int]>.array(of: .int(in: 0...23), count: 0...12)
        await forAll(Generator<([Int], Int)>.zip(children, .int(in: 0...3)), cases: scaled(200)) {
            kinds, width in
            let written = Unguarded(kinds.count + 1)
            let isRight = Locked(false)
            let expected = kinds.indices.map { $0 + 1 } + [99]
            let options = width == 0 ? OperationOptions.standard : OperationOptions(width: width)
            let group = transactionalOperation(options: options) { group in
                for (number, kind) in kinds.enumerated() {
                    let target: (any ExecutionTarget)? = [nil, serialQueue(), elsewhere][kind / 8]
                    let write: @Sendable () -> Void = { written.values[number] = number + 1 }
                    switch kind % 8 {
                    case 0, 1: group.operation(on: target, write)
                    case 2:
                        group.operation(on: target) { (attempt: COOperation<Void>.Attempt) in
                            elsewhere.async {
                                write()
                                attempt.finish()
                            }
                        }
                    case 3:
                        group.operation(on: target) { () async throws in
                            await Task.yield()
                            write()
                        }
                    case 4:
                        group.operation(on: target) { (attempt: COOperation<Void>.Attempt) in
                            // Registered late, from a child.
                            group.operation(on: target, write)
                            attempt.finish()
                        }
                    case 5:
                        group.operation(on: target) { (attempt: COOperation<Void>.Attempt) in
                            attempt.finish()
                            write()  // the block belongs to the operation until it returns
                        }
                    case 6: group.cascadeOperation(on: target) { $0.operation(on: target, write) }
                    default: group.transactionalOperation(on: target) { $0.operation(on: target, write) }
                    }
                }
                written.values[kinds.count] = 99
            } completion: {
                isRight.withLock { $0 = Array(written.values) == expected }
            }
            #expect(await group.outcome.isFinished)
            #expect(Array(written.values) == expected)
            #expect(await eventually { isRight.withLock { $0 } })
        }
    }

    @Test func `the last child's end races the block's return: completes once`() async {
        for _ in 0..<scaled(300) {
            let (completions, log) = (Count(), Log<String>())
            let isReturning = Gate()
            let group = transactionalOperation(on: elsewhere) { group in
                group.operation(on: elsewhere) { (attempt: COOperation<Void>.Attempt) in
                    isReturning.wait()
                    attempt.finish()
                }
                isReturning.open()
            } completion: {
                completions.add()
            } cancellation: { _ in
                log.add("asked")
            }
            #expect(await group.outcome.isFinished)
            await group.handlersAreOver()
            #expect(completions.value == 1 && log.entries.isEmpty)
        }
    }

    @Test func `values come in the order of registration, whatever the order of the ends`() async throws {
        await forAll(Generator<[Int]>.array(of: .int(in: 0...99), count: 1...8), cases: scaled(100)) {
            ranks in
            let attempts = Locked<[Int: COOperation<Int>.Attempt]>([:])
            let group = transactionalOperation { group in
                .values(
                    of: ranks.indices.map { number in
                        group.operation(returning: Int.self) { attempt in
                            attempts.withLock { $0[number] = attempt }
                        }
                    })
            }
            #expect(await eventually { attempts.withLock { $0.count == ranks.count } })
            for number in ranks.indices.sorted(by: { ranks[$0] < ranks[$1] }) {
                #expect(!group.isFinished)
                attempts.withLock { $0[number] }?.finish(number * 10)
            }
            let values = try await group.value
            #expect(values == ranks.indices.map { $0 * 10 })
        }
    }
}
