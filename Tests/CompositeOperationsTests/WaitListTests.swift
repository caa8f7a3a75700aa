// WaitListTests - the only place in the faces where a task is suspended: each waiter is resumed once, in its turn.

import CompositeOperationsBasics
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

/// A call that can be made on a list.
private enum Step: Hashable, Sendable {
    case append(mark: Int)
    /// Removes the waiter at this distance from the first remaining one.
    case remove(Int)
    case popFirst
    case takeUpTo(mark: Int)
    case takeAll
}

private let steps = Generator<Step>.frequency([
    (5, Generator<Int>.int(in: 0...2).map { Step.append(mark: $0) }),
    (2, Generator<Int>.int(in: 0...4).map { Step.remove($0) }),
    (1, Generator<Int>.int(in: 0...20).map { Step.takeUpTo(mark: $0) }),
    (2, Generator<Step>.element(of: [.popFirst, .takeAll])),
])

/// A wait list with its lock, as its owner holds them.
private final class Shore: Sendable {
    let list = Locked(WaitList())
    /// Whether there is nothing left to wait for.
    let isOver: Bool

    init(isOver: Bool = false) { self.isOver = isOver }

    func takeAll() -> WaitList.Woken { list.withLock { $0.takeAll() } }

    nonisolated(nonsending) func wait() async -> Wakening {
        await Waiter.wait { waiter in
            isOver ? .isOver : list.withLock { $0.append(waiter) }
        } orCancelledBy: { [list] waiter in
            list.withLock { $0.remove(waiter) }
        }
    }

    /// Starts a task, and returns when it is waiting in the list.
    func waitingTask() async -> Task<Wakening, Never> {
        let task = Task { await wait() }
        #expect(await eventually { self.list.withLock { !$0.isEmpty } })
        return task
    }
}

@Suite(.watched(testLimit), .leavesNothing) struct WaitListTests {
    /// I1, against an array.
    @Test func `waiters leave in the order of arrival`() async {
        await forAll(.array(of: steps, count: 1...60), cases: scaled(300)) { program in
            var list = WaitList()
            var left: [(number: Int, mark: Int, waiter: Waiter)] = []
            let woken = Log<Int>()
            var expected: [Int] = []
            var (count, mark) = (0, 0)
            for step in program {
                switch step {
                case .append(let more):
                    mark += more
                    let number = count
                    count += 1
                    let waiter = Waiter { _ in woken.add(number) }
                    let registration = list.append(waiter, mark: Int64(mark))
                    #expect(registration == .waits)
                    left.append((number, mark, waiter))
                case .remove(let place) where place < left.count:
                    let (number, _, waiter) = left.remove(at: place)
                    let (removed, again) = (list.remove(waiter), list.remove(waiter))
                    #expect(removed && !again)
                    waiter.wake()
                    expected.append(number)
                case .remove: break
                case .popFirst:
                    let waiter = list.popFirst()
                    #expect(waiter === left.first?.waiter)
                    waiter?.wake()
                    if !left.isEmpty { expected.append(left.removeFirst().number) }
                case .takeUpTo(let limit):
                    list.take { $0.mark <= limit }.wake()
                    let due = left.prefix { $0.mark <= limit }
                    expected += due.map(\.number)
                    left.removeFirst(due.count)
                case .takeAll:
                    list.takeAll().wake()
                    expected += left.map(\.number)
                    left = []
                }
                #expect(list.isEmpty == left.isEmpty && woken.entries == expected)
            }
        }
    }

    /// Therefore waiters are listed in the order of their calls.
    @Test func `a waiter on an actor leaves it only once it is in the list`() async {
        #expect(await CountedActor().jobs(of: { _ = await Shore(isOver: true).wait() }) == 0)
        let shore = Shore()
        let actor = CountedActor()
        async let jobs = actor.jobs(of: { _ = await shore.wait() })
        #expect(await eventually { shore.list.withLock { !$0.isEmpty } })
        #expect(actor.executor.jobs == 1)  // it has begun
        shore.takeAll().wake()
        #expect(await jobs == 1)  // it goes on
    }

    /// I1: the later of the two finds no waiter to wake.
    @Test func `either an arrival or a cancel wakes`() async {
        let shore = Shore()
        var task = await shore.waitingTask()
        let taken = shore.takeAll()
        task.cancel()
        taken.wake()
        #expect(await task.value == .arrived)

        task = await shore.waitingTask()
        task.cancel()
        shore.takeAll().wake()
        #expect(await task.value == .cancelled)
    }

    /// I3.
    @Test func `a task cancelled before or after its arrival does not wait`() async {
        let shore = Shore()
        let early = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await shore.wait()
        }
        #expect(await early.value == .cancelled)
        #expect(shore.list.withLock { $0.isEmpty })
        let late = await shore.waitingTask()
        late.cancel()
        #expect(await late.value == .cancelled)
        #expect(shore.list.withLock { $0.isEmpty })
    }

    /// I3, with a cancellation on arrival.
    @Test func `tasks that are cancelled as they come all go on`() async {
        let shore = Shore()
        let ends = await withTaskGroup(of: Wakening.self) { group in
            for _ in 0..<scaled(2000) {
                let task = Task { await shore.wait() }
                group.addTask { await task.value }
                task.cancel()
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(ends.count == scaled(2000) && ends.allSatisfy { $0 == .cancelled })
    }

    @Test func `a waiter that is woken twice stops the process`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let waiter = Waiter { _ in }
            waiter.wake()
            waiter.wake()
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(text.contains("Waiter: it is woken twice"))
    }
}
