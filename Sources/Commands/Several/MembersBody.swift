// MembersBody.swift - several commands, all or nothing.

@_spi(Faces) internal import Runs

/// Several commands, all or nothing, and the log of the last run.
final class MembersBody<Output: Sendable>: TransactionBody<Output>, @unchecked Sendable {
    private let members: [any UndoableCommand]
    /// Makes the output from the outputs of the commands: one for each command, in order, of that
    /// command's output type.
    private let gather: @Sendable ([any Sendable]) -> Output
    private let keepsOutputs: Bool
    private var left = Leftovers(MemberRunEnd())
    private var hasLeftovers = false

    init(
        _ members: [any UndoableCommand], _ options: TransactionOptions, keepsOutputs: Bool = true,
        _ gather: @escaping @Sendable ([any Sendable]) -> Output
    ) {
        if case .parallel(let limit) = options.order, limit < 1 {
            fatalError("TransactionCommand: the limit is \(limit), and must be at least 1")
        }
        self.members = members
        self.gather = gather
        self.keepsOutputs = keepsOutputs
        super.init(options)
    }

    override var tellsFailures: Bool { options.observer != nil }

    private var compensation: MemberCompensation {
        MemberCompensation(policy: options.compensation, observer: options.observer)
    }

    override func run(_ context: CommandContext) async throws -> Output {
        left = Leftovers(MemberRunEnd())
        hasLeftovers = false
        try checkUndoability()
        options.observer?(.started)
        defer { options.observer?(.ended) }
        var memberRun = memberRun
        if keepsOutputs { memberRun.outputs = Guarded(Array(repeating: nil, count: members.count)) }
        let end = await memberRun.perform(context)
        let left = Leftovers(end)
        if end.failures.isEmpty {
            self.left = left
            // Every output is set, since no member failed.
            return gather(memberRun.outputs?.withLock { $0.map { $0! } } ?? [])
        }
        let failure = await compensation.takeBack(left, of: end, context.compensating)
        hasLeftovers = failure.rollback != .complete
        throw failure
    }

    private func checkUndoability() throws {
        var pivot: Int?
        for (index, member) in members.enumerated() {
            let isIrreversible = member.undoability.isIrreversible
            switch options.irreversible {
            case .allow: return
            case .refuse: if isIrreversible { throw IrreversibleMember(member: index) }
            case .onlyAsSuffix:
                if let pivot, !isIrreversible, member.undoability != .noEffect {
                    throw IrreversibleMember(member: pivot)
                }
                if isIrreversible { pivot = pivot ?? index }
            }
        }
    }

    private var memberRun: MemberRun {
        MemberRun(
            members: members, order: options.order, compensation: options.compensation,
            observer: options.tracedObserver)
    }

    override var undoability: Undoability? { memberRun.undoability }

    override func undo(_ context: CommandContext) async throws {
        try await compensation.takeBack(left, context)
    }

    override var isRolledBack: Bool { !hasLeftovers }
    override func renewed() -> TransactionBody<Output> {
        MembersBody(members.map { renew($0) }, options, keepsOutputs: keepsOutputs, gather)
    }
}
