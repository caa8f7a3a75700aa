// LaneRun.swift - whether the calling code is a command of a lane, so that it would wait for itself.

internal import Glibc

/// A command that a lane runs, as its own thread or task sees it.
///
/// Tasks that a command starts inherit the mark, and may outlive the command: only its own thread or task counts, and those
/// that this module starts for it and awaits.
final class LaneRun: Sendable {
    @TaskLocal private static var current: LaneRun?

    private enum Owner: Sendable {
        case thread(pthread_t)
        case task(Int)
    }

    private let lane: Lane
    private let owner: Owner

    private init(_ lane: Lane, _ owner: Owner) {
        self.lane = lane
        self.owner = owner
    }

    private static var task: Owner? {
        withUnsafeCurrentTask { task in task.map { .task($0.hashValue) } }
    }

    static func onThread<Value>(of lane: Lane, _ body: () throws -> Value) rethrows -> Value {
        try $current.withValue(LaneRun(lane, .thread(pthread_self())), operation: body)
    }

    /// Calls `body`, in the task of this call, as a command of the lane; nil: of none.
    static func inTask<Value>(of lane: Lane?, _ body: () async -> Value) async -> Value {
        guard let lane else { return await body() }
        guard let task else { fatalError("LaneRun: no task") }
        return await $current.withValue(LaneRun(lane, task), operation: body)
    }

    /// The lane whose command the calling code is.
    static var innermost: Lane? { current.flatMap { isInside($0.lane) ? $0.lane : nil } }

    static func isInside(_ lane: Lane) -> Bool {
        guard let current, current.lane === lane else { return false }
        switch current.owner {
        case .thread(let thread): return pthread_equal(thread, pthread_self()) != 0
        case .task(let number): if case .task(number)? = task { return true } else { return false }
        }
    }
}
