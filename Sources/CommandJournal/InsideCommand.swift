// InsideCommand.swift - which code is part of a command of a journal: it may not execute another one of that.
//
// A recovery that begins the outer one again would find the inner one open, and its key in doubt, and count the outer one as
// failed; and with the same key it would wait for itself. So it is refused from the first.

internal import CompositeOperationsBasics
internal import Synchronization

/// A mark on the task of a command.
///
/// Tasks that a command starts inherit the mark, and may outlive the command: only its own task counts. The mark is void once the
/// command has ended: from then on another task may have the number of its own.
final class InsideCommand: Sendable {
    @TaskLocal private static var current: InsideCommand?

    private let journal: JournalWriter
    private let task: Int?
    private let isOver = Atomic(false)
    private let instance = Instance(.marks)

    private init(_ journal: JournalWriter) {
        self.journal = journal
        task = Self.currentTask
    }

    private static var currentTask: Int? { withUnsafeCurrentTask { $0?.hashValue } }

    /// Whether the calling code is part of a command of `journal`.
    static func isInside(_ journal: JournalWriter) -> Bool {
        guard let current, !current.isOver.load(ordering: .relaxed) else { return false }
        return current.journal === journal && current.task == currentTask
    }

    /// Calls `body`, which is part of a command of `journal`.
    static func mark<Value>(
        _ journal: JournalWriter, _ body: () async throws -> Value
    ) async rethrows -> Value {
        let mark = InsideCommand(journal)
        defer { mark.isOver.store(true, ordering: .relaxed) }
        return try await $current.withValue(mark, operation: body)
    }
}
