// TransactionGroup.swift - several runs with one name: it ends when all have.

internal import CompositeOperationsBasics
@_spi(Faces) internal import Runs

/// Several runs, whose ends are told as one.
///
/// It ends once, when it is sealed and everything in it has ended: finished when all have, else as the first that has not.
/// A group that is released unsealed ends as ``CancelReason/Kind/abandoned``.
public final class TransactionGroup: Sendable {
    private struct State {
        var outstanding = 1  // until it is sealed
        var isSealed = false
        /// That of the first that ended without a value.
        var badEnd: Outcome<Never>?
        /// Its members, until all have ended.
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

        /// A later `add` looks whether this was asked for before.
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

        /// - Returns: whose inline notices the caller has to deliver.
        func ended(_ badEnd: Outcome<Never>?) -> [Deliveries] {
            let (outcome, runs) = state.withLock { state -> (Outcome<Void>?, [CommandRun]) in
                if state.badEnd == nil { state.badEnd = badEnd }
                state.outstanding -= 1
                if state.outstanding > 0 { return (nil, []) }
                defer { state.runs = [] }
                return (state.badEnd.map(Outcome.init) ?? .finished(()), state.runs)
            }
            withExtendedLifetime(runs) {}  // released under no lock
            return outcome.flatMap { handle.latch($0, from: .ready) } ?? []
        }
    }

    private let members = Members()

    /// Creates a group of nothing.
    public init(
        delegate: (any TransactionCommandDelegate)? = nil, options: TransactionOptions = TransactionOptions()
    ) {
        members.handle.locked { $0.delegate = delegate.map { DelegateReference($0, options) } }
    }

    deinit {
        if !members.isSealed { members.handle.end(.cancelled(CancelReason(ofRun: .abandoned)), from: .ready) }
    }

    /// The token of the whole.
    public var transaction: CommandTransaction { members.handle.transaction }

    /// The whole, to be waited for and observed. To cancel it cancels what is in it, and what is added later; it ends as always.
    public var handle: CommandHandle<Void> { members.handle }

    /// Adds a run, which may have ended already.
    ///
    /// - Precondition: the group is not sealed.
    public func add<Output>(_ command: TransactionCommand<Output>) {
        members.add(command.handle)
        command.handle.whenEnded { [members] in members.ended($0) }
        if handle.isCancelRequested { command.handle.cancel() }
    }

    /// Nothing more will be added.
    public func seal() { members.seal() }
}
