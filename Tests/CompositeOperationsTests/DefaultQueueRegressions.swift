// R45: the default queue. Process-wide settings are tested in a separate process.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct DefaultQueueRegressions {
    @Test(.promises("R45"))
    func `R45: many threads set and read the default queue, and make operations meanwhile`() async {
        await #expect(processExitsWith: .success) {
            let targets = (0..<4).map { _ in CountingTarget(to: elsewhere) }
            let known = Set(targets.map { ObjectIdentifier($0) } + [ObjectIdentifier(Scheduler.shared)])
            let answers = await atOnce(4) {
                index -> (replaced: [ObjectIdentifier], isKnown: Bool, made: [COOperation<Int>]) in
                var replaced: [ObjectIdentifier] = []
                var isKnown = true
                var made: [COOperation<Int>] = []
                for round in 0..<500 {
                    let new = round % 7 == 3 ? nil : targets[index]
                    replaced.append(ObjectIdentifier(COQueues.setDefaultQueue(new)))
                    isKnown = isKnown && known.contains(ObjectIdentifier(CODefaultQueue()))
                    if round % 10 == 0 { made.append(operation { round }) }
                }
                return (replaced, isKnown, made)
            }
            try #require(answers.allSatisfy { $0.isKnown })
            for one in answers.flatMap(\.made) { _ = try await one.value }
            // Each replacement returns what it replaced, so each setting except the last is returned exactly once.
            var told: [ObjectIdentifier: Int] = [:]
            for id in answers.flatMap(\.replaced) { told[id, default: 0] += 1 }
            told[ObjectIdentifier(COQueues.defaultQueue), default: 0] += 1
            var set: [ObjectIdentifier: Int] = [ObjectIdentifier(Scheduler.shared): 1]
            for target in targets {
                for round in 0..<500 {
                    set[
                        round % 7 == 3 ? ObjectIdentifier(Scheduler.shared) : ObjectIdentifier(target),
                        default: 0] += 1
                }
            }
            try #require(told == set)
        }
    }

    @Test(.promises("R32", "R45"))
    func `R45: unset, the default is the built-in scheduler; operations keep what was in force`() async {
        await #expect(processExitsWith: .success) {
            try #require(CODefaultQueue() === Scheduler.shared)
            let (first, second) = (CountingTarget(to: elsewhere), CountingTarget(to: elsewhere))
            try #require(COQueues.setDefaultQueue(first) === Scheduler.shared)
            let one = COOperation<Void> { $0.finish() }
            let cascade = COCascade<Void> { cascade in cascade.operation {} }
            COSetDefaultQueue(second)
            try #require(CODefaultQueue() === second)
            try await one.run()
            try #require(first.submitted.value == 1 && second.submitted.value == 0)
            try await cascade.run()
            // The cascade's step was created while the second target was the default.
            try #require(first.submitted.value == 2 && second.submitted.value == 1)
            try #require(COQueues.setDefaultQueue(nil) === second)
            try #require(COQueues.defaultQueue === Scheduler.shared)
            let isWorker = operation { Scheduler.current === Scheduler.shared }
            try #require(try await isWorker.value)
        }
    }

    @Test(.promises("R45")) func `R45: one thread's scope is not seen by another, whatever they set`()
        async
    {
        let targets = (0..<4).map { _ in CountingTarget(to: elsewhere) }
        let answers = await atOnce(4) { index in
            (0..<200).allSatisfy { _ in
                COQueues.withDefaultQueue(targets[index]) { CODefaultQueue() === targets[index] }
            }
        }
        #expect(answers == [true, true, true, true])
    }
}
