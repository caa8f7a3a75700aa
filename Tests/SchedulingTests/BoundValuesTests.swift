// Whether a task-local value is bound: the answer in every place where code can run. The answer "none" must be true.
// The answer "some" may be wrong, but only in the cases that are named.

import Dispatch
import PropertyTesting
import PropertyTestingSupport
import Synchronization
import Testing

@testable import Scheduling

private enum Local {
    @TaskLocal static var number = 0
    @TaskLocal static var text = ""
    @TaskLocal static var object: Marker?
}

private final class Marker: Sendable {}

/// Returns the answers with no value bound, with one, with two, with one again, and with none.
private func answers() -> [Bool] {
    var answers = [BoundValues.areHere]
    Local.$number.withValue(1) {
        answers.append(BoundValues.areHere)
        Local.$text.withValue("a") { answers.append(BoundValues.areHere) }
        answers.append(BoundValues.areHere)
    }
    answers.append(BoundValues.areHere)
    return answers
}

/// Whether every answer is right, with each key bound within the bindings of the keys before it.
private func nest(_ keys: ArraySlice<Int>, below count: Int) -> Bool {
    let isRight = BoundValues.areHere == (count > 0)
    guard let key = keys.first, isRight else { return isRight }
    let rest = keys.dropFirst()
    return switch key {
    case 0: Local.$number.withValue(count) { nest(rest, below: count + 1) }
    case 1: Local.$text.withValue("\(count)") { nest(rest, below: count + 1) }
    default: Local.$object.withValue(Marker()) { nest(rest, below: count + 1) }
    }
}

private let right = [false, true, true, true, false]

private actor Somebody {
    func ask() -> [Bool] { answers() }
}

/// Runs outside of tasks, on a separate thread.
private func onThread<Answer: Sendable>(_ body: @escaping @Sendable () -> Answer) async -> Answer {
    await withCheckedContinuation { continuation in
        let queue = DispatchQueue(label: "of its own")
        queue.async { continuation.resume(returning: body()) }
    }
}

@Suite struct BoundValuesTests {
    /// All other tests depend on this: with another runtime, copies are made needlessly, and this test fails.
    @Test func `the experiment finds its places`() { #expect(BoundValues.areKnown) }

    @Test func `in tasks of every kind`() async throws {
        // The test's own task has values that the test library has bound.
        let detached = Task.detached { answers() }
        #expect(await detached.value == right)
        let actor = Task.detached { await Somebody().ask() }
        #expect(await actor.value == right)
        let children = Task.detached {
            async let one = answers()
            let group = await withTaskGroup(of: [Bool].self) { group in
                for _ in 0..<10 { group.addTask { answers() } }
                return await group.reduce(into: []) { $0.append($1) }
            }
            return await group + [one]
        }
        #expect(await children.value == Array(repeating: right, count: 11))
        let main = Task.detached { @MainActor in answers() }
        #expect(await main.value == right)
        let unstructured = Task.detached { await Task { answers() }.value }
        #expect(await unstructured.value == right)
    }

    @Test func `children and copies have their parent's values`() async throws {
        let bound = Task.detached {
            await Local.$number.withValue(1) {
                async let one = answers()
                async let deep = Task.detached { await self.grandchild() }.value
                let below = await self.grandchild()
                let copy = await Task { answers() }.value
                return await [one, below, copy, deep]
            }
        }
        let all = Array(repeating: true, count: 5)
        #expect(await bound.value == [all, all, all, right])
    }

    private func grandchild() async -> [Bool] {
        await withTaskGroup(of: [Bool].self) { group in
            group.addTask {
                await withTaskGroup(of: [Bool].self) { group in
                    group.addTask { answers() }
                    return await group.next()!
                }
            }
            return await group.next()!
        }
    }

    @Test func `outside of tasks`() async throws {
        #expect(await onThread(answers) == right)
        let scheduler = try Scheduler(.init(workers: 3))
        let (seen, counter) = (Locked<[[Bool]]>([]), try CompletionCounter())
        for _ in 0..<100 {
            try scheduler.submit(in: counter) {
                let answers = answers()
                seen.withLock { $0.append(answers) }
            }
        }
        try await counter.wait()
        #expect(seen.withLock(\.self) == Array(repeating: right, count: 100))
        try await scheduler.shutdown()
    }

    @Test func `in a task within its thread's values, and in these after it`() async throws {
        let seen = await onThread {
            Local.$number.withValue(1) {
                var inside: [Bool] = []
                SynchronousTask.detached().run { inside = answers() }
                var copied: [Bool] = []
                SynchronousTask().run { copied = answers() }
                return [inside, copied, [BoundValues.areHere]]
            }
        }
        #expect(seen == [right, Array(repeating: true, count: 5), [true]])
    }

    @Test func `the keys of bound values are known, even a parent's`() async throws {
        let (number, text) = (BoundValues.address(of: Local.$number), BoundValues.address(of: Local.$text))
        let keys: @Sendable () -> [UInt] = {
            var keys: [UInt] = []
            let all = BoundValues.allKeysHere {
                keys.append($0)
                return true
            }
            return all == true ? keys : []
        }
        let everywhere: @Sendable () -> [[UInt]] = {
            [keys()] + Local.$number.withValue(1) { [keys()] + Local.$text.withValue("a") { [keys()] } }
        }
        let expected = [[], [number], [text, number]]
        #expect(await onThread(everywhere) == expected)
        #expect(await Task.detached(operation: everywhere).value == expected)
        let child = Task.detached {
            await Local.$number.withValue(1) {
                async let one = Local.$text.withValue("a") { keys() }
                return await one
            }
        }
        #expect(await child.value == [text, number])
        let stops = await onThread { Local.$number.withValue(1) { BoundValues.allKeysHere { _ in false } } }
        #expect(stops == false)
    }

    @Test func `any nesting of bindings is answered right, in a task and outside`() async throws {
        await forAll(.array(of: .int(in: 0...2), count: 0...12)) { keys in
            try #require(await Task.detached { nest(keys[...], below: 0) }.value)
            try #require(await onThread { nest(keys[...], below: 0) })
        }
    }

    @Test func `with nothing bound, an inheriting operation is submitted as is`() async throws {
        let inTask = Task.detached { () -> [Bool] in
            let scheduler = try Scheduler(.init(workers: 1))
            let (seen, counter) = (Locked<[Bool]>([]), try CompletionCounter())
            let ask: @Sendable () -> Void = {
                let isInTask = withUnsafeCurrentTask { $0 != nil }
                seen.withLock { $0.append(isInTask) }
            }
            try scheduler.submit(context: .inherited, in: counter, ask)
            try Local.$number.withValue(1) {
                try scheduler.submit(context: .inherited, in: counter, ask)
            }
            try await counter.wait()
            try await scheduler.shutdown()
            return seen.withLock(\.self)
        }
        #expect(try await inTask.value == [false, true])
    }
}
