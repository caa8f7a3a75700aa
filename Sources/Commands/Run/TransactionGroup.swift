// TransactionGroup.swift - several runs under one token; the group ends when all its runs have ended.

internal import CompositeOperationsBasics
@_spi(Faces) internal import Runs

/// Several runs whose outcomes are reported as one.
///
/// The group ends once, when it is sealed and all its runs have ended: finished if all finished, otherwise with the outcome
/// of the first run that did not. A group that is released unsealed ends as ``CancelReason/Kind/abandoned``.
public final class TransactionGroup: Sendable {
    private struct State {
        var outstanding = 1  // the runs that have not ended, plus one until the group is sealed
        var isSealed = false
        /// The end of the first run that ended without a value.
        var badEnd: Outcome<Never>?
        /// The members, until all have ended.
        var runs: [CommandRun] = []
    }

    private final class Members: Sendable {
        let handle = CommandHandle<Void>()
        private let state = Guarded(State())
        private let instance = Instance(.groups)

        var isSealed: Bool { state.withLock { $0.isSealed } }

        init() { handle.locked { $0.cancelMembers = { [weak self] in self?.cancel() ?? [] } } }

        func add(_ run: CommandRun) {
            state.withLock { state in
                if state.isSealed {
                    fatalError("TransactionGroup.add: the group is sealed; add its commands before seal()")
                }
                state.outstanding += 1
                state.runs.append(run)
            }
        }

        /// Cancels the current members. A run added later is cancelled by `add`, which checks for an earlier request.
        private func cancel() -> [Deliveries] {
            state.withLock { $0.runs }.flatMap { $0.latchCancelled().owed }
        }

        func seal() {
            let isFirst = state.withLock { state in
                defer { state.isSealed = true }
                return !state.isSealed
            }
            if isFirst { ended(nil).deliverInline() }
        }

        /// - Returns: the deliveries whose inline notices the caller must deliver.
        func ended(_ badEnd: Outcome<Never>?) -> [Deliveries] {
            let (outcome, runs) = state.withLock { state -> (Outcome<Void>?, [CommandRun]) in
                if state.badEnd == nil { state.badEnd = badEnd }
                state.outstanding -= 1
                if state.outstanding > 0 { return (nil, []) }
                defer { state.runs = [] }
                return (state.badEnd.map(Outcome.init) ?? .finished(()), state.runs)
            }
            withExtendedLifetime(runs) {}  // released outside the lock
            return outcome.flatMap { handle.latch($0, from: .ready) } ?? []
        }
    }

    private let members = Members()

    /// Creates an empty group.
    public init(
        delegate: (any TransactionCommandDelegate)? = nil, options: TransactionOptions = TransactionOptions()
    ) {
        members.handle.locked { $0.delegate = delegate.map { DelegateReference($0, options) } }
    }

    deinit {
        if !members.isSealed { members.handle.end(.cancelled(CancelReason(ofRun: .abandoned)), from: .ready) }
    }

    /// The token of the group.
    public var transaction: CommandTransaction { members.handle.transaction }

    /// The group as a run, for waiting and observing. Cancelling it cancels the runs in the group and those added later; the
    /// group ends as usual.
    public var handle: CommandHandle<Void> { members.handle }

    /// Adds a run, which may have ended already.
    ///
    /// - Precondition: the group is not sealed.
    public func add<Output>(_ command: TransactionCommand<Output>) {
        members.add(command.handle)
        command.handle.whenEnded { [members] in members.ended($0) }
        if handle.isCancelRequested { command.handle.cancel() }
    }

    /// Declares that no more runs will be added.
    public func seal() { members.seal() }
}
