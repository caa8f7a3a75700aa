// Acts.swift - the acts of a saboteur, and factories for the common kinds of saboteur.

import Glibc
import PropertyTesting

/// Counts the events that a saboteur sees, and its acts.
final class Acts: Sendable {
    private struct State {
        var (seen, acts, isOver) = (0, 0, false)
        var releases: [@Sendable () -> Void] = []
    }

    private let state = Locked(State())
    private let gate = Gate()

    var count: Int { state.withLock { $0.acts } }
    func act() { state.withLock { $0.acts += 1 } }

    /// Whether to act on this event: on every `number`th, until the case is over.
    func every(_ number: Int) -> Bool {
        state.withLock { state in
            state.seen += 1
            guard !state.isOver, state.seen % number == 0 else { return false }
            state.acts += 1
            return true
        }
    }

    /// Blocks the thread until the case is over, but no longer: a pool's thread that hung forever would be
    /// missing in the next case.
    func hang() {
        act()
        gate.wait()
    }

    /// Runs `release` when the case is over; at once, if it already is.
    func atEnd(_ release: @escaping @Sendable () -> Void) {
        let isOver = state.withLock { state in
            if !state.isOver { state.releases.append(release) }
            return state.isOver
        }
        if isOver { release() }
    }

    /// Called when the case is over.
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
    /// Replaces the submission of closures.
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

    /// Changes how submitted closures are run.
    static func ofBody(
        _ name: String, _ make: @escaping @Sendable (Instance, Acts) -> @Sendable (Instance.Body) -> Void
    ) -> Saboteur {
        Saboteur(name) { instance, acts in
            let (original, run) = (instance.submit, make(instance, acts))
            instance.submit = { body in original { run(body) } }
        }
    }

    /// Replaces the creation of operations.
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

    /// Replaces the enqueuing of tasks' jobs.
    static func ofJobs(
        _ name: String, _ enqueue: @escaping @Sendable (Acts, any TaskExecutor, UnownedJob) -> Void
    ) -> Saboteur {
        Saboteur(name) { instance, acts in
            guard let original = instance.taskExecutor else { return }
            instance.taskExecutor = SabotagedExecutor { enqueue(acts, original, $0) }
        }
    }
}

/// A task executor that passes its jobs to a saboteur.
final class SabotagedExecutor: TaskExecutor {
    private let take: @Sendable (UnownedJob) -> Void
    init(_ take: @escaping @Sendable (UnownedJob) -> Void) { self.take = take }
    func enqueue(_ job: consuming ExecutorJob) { take(UnownedJob(job)) }
}

/// Lets at most `count` bodies run at a time, until the case is over.
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

/// The threads that are currently inside `run`.
final class Inside: Sendable {
    private let threads = Locked<Set<UInt>>([])
    var isHere: Bool { threads.withLock { $0.contains(UInt(pthread_self())) } }

    func run(_ body: () -> Void) {
        let isNew = threads.withLock { $0.insert(UInt(pthread_self())).inserted }
        body()
        if isNew { threads.withLock { _ = $0.remove(UInt(pthread_self())) } }
    }
}
