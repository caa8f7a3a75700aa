import CompositeOperations
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.watched(.seconds(20))) struct SmokeTests {
    @Test func `leaf finishes`() async throws {
        let one = operation { 7 }
        #expect(try await one.value == 7)
        let two = operation { attempt in attempt.finish() }
        try await two.value
        let three = operation { () async throws -> Int in 9 }
        #expect(try await three.value == 9)
    }
    @Test func `cascade runs in order`() async throws {
        let log = Locked<[Int]>([])
        let c = cascadeOperation { cascade in
            for i in 0..<100 { cascade.operation { log.withLock { $0.append(i) } } }
        }
        try await c.value
        #expect(log.withLock { $0 } == Array(0..<100))
    }
    @Test func `transaction sums`() async throws {
        let t = transactionalOperation { group in
            .values(of: (0..<100).map { i in group.operation { i } })
        }
        #expect(try await t.value.reduce(0, +) == 4950)
    }
    @Test func `value passed on`() async throws {
        let sum = cascadeOperation { cascade in
            let numbers = cascade.operation { [1, 2, 3] }
            let sum = cascade.operation(using: numbers) { $0.reduce(0, +) }
            return .value(of: sum)
        }
        #expect(try await sum.value == 6)
    }
    @Test func `cancel child cancels`() async throws {
        let called = Locked(0)
        let c = cascadeOperation { cascade in
            cascade.operation { $0.finish() }
            cascade.operation { $0.cancel() }
            cascade.operation { $0.finish() }
        } completion: {
            called.withLock { $0 += 100 }
        } cancellation: { _ in
            called.withLock { $0 += 1 }
        }
        let o = await c.outcome
        guard case .cancelled(let r) = o else { Issue.record("\(o)"); return }
        #expect(r.kind == .child)
        #expect(called.withLock { $0 } == 1)
    }
    @Test func `awake redoes`() async throws {
        let runs = Locked([0, 0, 0])
        let c = cascadeOperation { cascade in
            cascade.operation { a in
                runs.withLock { $0[0] += 1 }; a.finish()
            }
            cascade.operation { a in
                if runs.withLock({
                    $0[1] += 1; return $0[1]
                }) < 3 {
                    a.cancel()
                } else {
                    a.finish()
                }
            }
            cascade.operation { a in
                runs.withLock { $0[2] += 1 }; a.finish()
            }
        } cancellation: {
            $0.awake()
        }
        try await c.value
        #expect(runs.withLock { $0 } == [1, 3, 1])
        #expect(c.attempt == 3)
    }
    @Test func `nested`() async throws {
        let count = Locked(0)
        let c = cascadeOperation { cascade in
            for _ in 0..<10 {
                cascade.transactionalOperation { group in
                    for _ in 0..<10 { group.operation { count.withLock { $0 += 1 } } }
                    group.cascadeOperation { c in
                        for _ in 0..<5 { c.operation { count.withLock { $0 += 1 } } }
                    }
                }
            }
        }
        try await c.value
        #expect(count.withLock { $0 } == 150)
    }
    @Test func `sync`() {
        var x = 0
        let s = syncOperation { so in
            x += 1; if so.number < 3 { so.rerun() } else { operation(on: concurrentQueue()) { so.finish() } }
        }
        #expect(x == 3)
        #expect(s.isFinished)
    }
    @Test func `queue limit one nested`() async throws {
        let q = COOperationQueue(runningLimit: 1)
        let count = Locked(0)
        let c = (0..<10).map { _ in
            cascadeOperation(on: q) { cascade in
                for _ in 0..<10 { cascade.operation { count.withLock { $0 += 1 } } }
            }
        }
        for x in c { try await x.value }
        await q.idle()
        #expect(count.withLock { $0 } == 100)
        #expect(q.operationCount == 0)
    }
    @Test func `suspend resume`() async throws {
        let c = cascadeOperation { cascade in
            cascade.suspend()
            for _ in 0..<10 { cascade.operation {} }
        }
        while c.numberOfRuns == 0 || c.state != .suspended { await Task.yield() }
        #expect(c.resume())
        try await c.value
    }
    @Test func `resolver`() async throws {
        let runs = Locked(0)
        let o = operation(
            options: OperationOptions(
                resolver: COOperationResolver(maxAttempts: 4, backoff: .constant(.milliseconds(1))))
        ) { () throws -> Int in
            if runs.withLock({
                $0 += 1; return $0
            }) < 4 {
                throw E()
            }
            return 1
        }
        #expect(try await o.value == 1)
        #expect(runs.withLock { $0 } == 4)
    }
    struct E: Error {}
}
