// LaneRun.swift - what the calling code is a part of, and would wait for itself if it waited for that.

internal import Glibc
internal import Synchronization

/// A mark on the thread or task of a command: whose turn it has.
///
/// Tasks that a command starts inherit the mark, and may outlive the command: only its own thread or task counts, and those
/// that this module starts for it and awaits. The mark is void once its turn is over: from then on another thread or task
/// may have the number of its owner.
final class LaneRun: Sendable {
    typealias Holder = any AnyObject & Sendable

    @TaskLocal private static var current: LaneRun?

    private enum Owner: Sendable {
        /// And the task that it was running, which a task that inherits the mark is not.
        case thread(pthread_t, Int?)
        case task(Int)
    }

    private let holders: [Holder]
    private let owner: Owner
    private let isOver = Atomic(false)

    private init(_ holders: [Holder], _ owner: Owner) {
        self.holders = holders
        self.owner = owner
    }

    private static var task: Int? { withUnsafeCurrentTask { $0?.hashValue } }

    /// What has given its turn to the calling code.
    static var innermost: [Holder] {
        guard let current, !current.isOver.load(ordering: .relaxed) else { return [] }
        let isMine =
            switch current.owner {
            case .thread(let thread, let number): pthread_equal(thread, pthread_self()) != 0 && task == number
            case .task(let number): task == number
            }
        return isMine ? current.holders : []
    }

    static func isInside(_ holder: Holder) -> Bool { innermost.contains { $0 === holder } }

    /// Calls `body`, which never awaits, in a turn of `holder`.
    static func onThread<Value>(of holder: Holder, _ body: () throws -> Value) rethrows -> Value {
        let run = LaneRun([holder], .thread(pthread_self(), task))
        defer { run.isOver.store(true, ordering: .relaxed) }
        return try $current.withValue(run, operation: body)
    }

    /// Calls `body`, in the task and the isolation of this call, in turns of all `holders`.
    static func inTask<Value>(
        of holders: [Holder], isolation: isolated (any Actor)? = #isolation,
        _ body: nonisolated(nonsending) () async throws -> Value
    ) async rethrows -> Value {
        if holders.isEmpty { return try await body() }
        guard let task else { fatalError("LaneRun: no task") }
        let run = LaneRun(holders, .task(task))
        defer { run.isOver.store(true, ordering: .relaxed) }
        return try await $current.withValue(
            run,
            operation: {
                _ = isolation  // a closure is isolated to what it captures
                return try await body()
            }, isolation: isolation)
    }
}
