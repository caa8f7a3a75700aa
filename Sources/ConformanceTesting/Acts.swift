// Acts.swift - what a saboteur did, and the ways in which most of them are made.

import Glibc
import PropertyTesting

/// Counts what a saboteur sees, and what it does.
final class Acts: Sendable {
    private struct State {
        var (seen, acts, isOver) = (0, 0, false)
        var releases: [@Sendable () -> Void] = []
    }

    private let state = Locked(State())
    private let gate = Gate()

    var count: Int { state.withLock { $0.acts } }
    func act() { state.withLock { $0.acts += 1 } }

    /// Whether this is one of those to which something is done: every `number`th, until the case is over.
    func every(_ number: Int) -> Bool {
        state.withLock { state in
            state.seen += 1
            guard !state.isOver, state.seen % number == 0 else { return false }
            state.acts += 1
            return true
        }
    }

    /// Blocks the thread until the case is over: a thread of a pool that hung for ever would be missed by the next case.
    func hang() {
        act()
        gate.wait()
    }

    /// Has something done when the case is over; at once, when it is.
    func atEnd(_ release: @escaping @Sendable () -> Void) {
        let isOver = state.withLock { state in
            if !state.isOver { state.releases.append(release) }
            return state.isOver
        }
        if isOver { release() }
    }

    /// The case is over.
    func end() {
        let releases = state.withLock { state in
            state.isOver = true
            defer { state.releases = [] }
            return state.releases
        }
        gate.open()
        for release in releases { release() }
    }
}

extension Saboteur {
    /// Does something else with closures that are submitted.
    static func ofSubmit(
        _ name: String,
        _ submit:
            @escaping @Sendable (
                Acts, _ original: @Sendable (@escaping Instance.Body) -> Void, @escaping Instance.Body
            )
            -> Void
    ) -> Saboteur {
        Saboteur(name) { instance, acts in
            let original = instance.submit
            instance.submit = { submit(acts, original, $0) }
        }
    }

    /// Runs closures that are submitted in another way.
    static func ofBody(
        _ name: String, _ make: @escaping @Sendable (Instance, Acts) -> @Sendable (Instance.Body) -> Void
    ) -> Saboteur {
        Saboteur(name) { instance, acts in
            let (original, run) = (instance.submit, make(instance, acts))
            instance.submit = { body in original { run(body) } }
        }
    }

    /// Makes other operations.
    static func ofOperation(
        _ name: String,
        _ make:
            @escaping @Sendable (
                Acts,
                _ original: @Sendable ([TestedOperation], @escaping TestedOperation.Body) -> TestedOperation,
                [TestedOperation], @escaping TestedOperation.Body
            ) -> TestedOperation
    ) -> Saboteur {
        Saboteur(name) { instance, acts in
            guard let original = instance.operation else { return }
            instance.operation = { make(acts, original, $0, $1) }
        }
    }

    /// Does something else with the jobs of tasks.
    static func ofJobs(
        _ name: String, _ enqueue: @escaping @Sendable (Acts, any TaskExecutor, UnownedJob) -> Void
    ) -> Saboteur {
        Saboteur(name) { instance, acts in
            guard let original = instance.taskExecutor else { return }
            instance.taskExecutor = SabotagedExecutor { enqueue(acts, original, $0) }
        }
    }
}

/// A task executor that hands its jobs to a saboteur.
final class SabotagedExecutor: TaskExecutor {
    private let take: @Sendable (UnownedJob) -> Void
    init(_ take: @escaping @Sendable (UnownedJob) -> Void) { self.take = take }
    func enqueue(_ job: consuming ExecutorJob) { take(UnownedJob(job)) }
}

/// As many at a time as there are places, until the case is over.
final class Places: Sendable {
    private struct State {
        var free: Int
        var waiting: [Gate] = []
        var isOver = false
    }

    private let state: Locked<State>

    init(_ count: Int, _ acts: Acts) {
        state = Locked(State(free: count))
        acts.atEnd { [state] in
            let waiting = state.withLock { state in
                state.isOver = true
                return state.waiting
            }
            for gate in waiting { gate.open() }
        }
    }

    func within(_ body: () -> Void) {
        let gate = state.withLock { state -> Gate? in
            if state.isOver { return nil }
            if state.free > 0 {
                state.free -= 1
                return nil
            }
            state.waiting.append(Gate())
            return state.waiting.last
        }
        gate?.wait()
        body()
        let next = state.withLock { state -> Gate? in
            if state.isOver || state.waiting.isEmpty {
                state.free += 1
                return nil
            }
            return state.waiting.removeFirst()
        }
        next?.open()
    }
}

/// The threads that are inside of something.
final class Inside: Sendable {
    private let threads = Locked<Set<UInt>>([])
    var isHere: Bool { threads.withLock { $0.contains(UInt(pthread_self())) } }

    func run(_ body: () -> Void) {
        let isNew = threads.withLock { $0.insert(UInt(pthread_self())).inserted }
        body()
        if isNew { threads.withLock { _ = $0.remove(UInt(pthread_self())) } }
    }
}
