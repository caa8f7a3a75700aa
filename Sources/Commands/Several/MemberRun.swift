// MemberRun.swift - running and undoing several commands, for transaction commands and macros.
//
// Invariants:
//   I1  `done` holds the members that returned, each once, in the order in which they returned. It belongs to one run.
//   I2  after the first failure or a cancellation, no member starts; running members are awaited.
//   I3  a rollback goes backwards through the leftovers of a run, and removes what it undid. So a command is undone
//       before the work that it depended on, and a retry resumes where the previous attempt stopped.

@_spi(Faces) internal import Runs

/// A command that returned, with its undo; or one part of the compensation that a failing command registered.
struct DoneMember: Sendable {
    let member: Int
    var undoability = Undoability.exact
    var isPart = false
    let undo: @Sendable (CommandContext) async throws -> Void
}

/// The work of a run that is still to be undone. At most one task at a time undoes it.
final class Leftovers: Sendable {
    private struct State {
        var members: [DoneMember]
        var hasIrreversible = false
    }

    private let state: Guarded<State>

    /// The work left by a run, in the order in which it was done.
    init(_ end: MemberRunEnd) {
        let parts = end.failures.flatMap { failure in
            failure.parts.map { DoneMember(member: failure.member ?? 0, isPart: true, undo: $0) }
        }
        state = Guarded(State(members: end.done + parts))
    }

    /// The members, in the order in which they were done.
    var members: [DoneMember] { state.withLock { $0.members } }
    /// Whether something irreversible remains that is no longer listed.
    var hasIrreversible: Bool { state.withLock { $0.hasIrreversible } }

    func keep(_ members: [DoneMember], hasIrreversible: Bool) {
        let former = state.withLock { state in
            defer { state = State(members: members, hasIrreversible: hasIrreversible) }
            return state
        }
        withExtendedLifetime(former) {}  // released outside the lock
    }
}

/// How a run of several commands ended.
struct MemberRunEnd: Sendable {
    struct Failure: Sendable {
        /// nil if the run was cancelled and no member threw.
        let member: Int?
        let error: any Error
        var parts: [FailureParts.Part] = []
    }

    var done: [DoneMember] = []
    /// The first failure is the cause.
    var failures: [Failure] = []
}

/// Several commands that run as one.
struct MemberRun: Sendable {
    let members: [any UndoableCommand]
    let order: TransactionOptions.Order
    let compensation: TransactionOptions.Compensation
    var observer: (@Sendable (TransactionEvent) -> Void)?
    /// The members' outputs, each at its index; nil if they are not needed.
    var outputs: Guarded<[(any Sendable)?]>?

    /// Runs the members until one fails.
    func perform(_ context: CommandContext) async -> MemberRunEnd {
        switch order {
        case .sequential: await performInOrder(context)
        case .parallel(let limit): await performAtOnce(limit, context)
        }
    }

    private func performInOrder(_ context: CommandContext) async -> MemberRunEnd {
        var end = MemberRunEnd()
        end.done.reserveCapacity(members.count)
        var context = context
        context.parts = newParts
        for index in members.indices {
            if context.isCancelled {
                end.failures = [MemberRunEnd.Failure(member: nil, error: CancellationError())]
                break
            }
            renewParts(&context.parts)
            switch await perform(index, context) {
            case .success(let done):
                end.done.append(done)
                observer?(.finished(member: index))
            case .failure(let failure):
                end.failures = [failure]
                observer?(.failed(member: index, failure.error))
            }
            if !end.failures.isEmpty { break }
        }
        return end
    }

    private func performAtOnce(_ limit: Int, _ context: CommandContext) async -> MemberRunEnd {
        let log = Guarded<[DoneMember]>([])
        let lane = ReentrancyMark.innermost
        var end = await withTaskGroup(of: (Int, MemberRunEnd.Failure?).self) { group in
            var end = MemberRunEnd()
            var next = 0
            func startNext() {
                guard next < members.count, end.failures.isEmpty else { return }
                if context.isCancelled {
                    end.failures = [MemberRunEnd.Failure(member: nil, error: CancellationError())]
                    return
                }
                let index = next
                next += 1
                group.addTask {
                    await ReentrancyMark.inTask(of: lane) {
                        var context = context
                        context.parts = newParts
                        switch await perform(index, context) {
                        case .success(let done):
                            log.withLock { $0.append(done) }
                            return (index, nil)
                        case .failure(let failure): return (index, failure)
                        }
                    }
                }
            }
            for _ in 0..<min(limit, members.count) { startNext() }
            while let (index, failure) = await group.next() {
                if let failure {
                    if end.failures.isEmpty { group.cancelAll() }
                    end.failures.append(failure)
                    observer?(.failed(member: index, failure.error))
                } else {
                    observer?(.finished(member: index))
                    startNext()
                }
            }
            return end
        }
        end.done = log.withLock { $0 }
        return end
    }

    private enum Answer: Sendable {
        case success(DoneMember)
        case failure(MemberRunEnd.Failure)
    }

    /// Collects the compensation that a member registers.
    private var newParts: FailureParts { FailureParts(compensation) }

    /// Replaces parts to which an earlier member has added, or could still add.
    private func renewParts(_ parts: inout FailureParts?) {
        if isKnownUniquelyReferenced(&parts), parts?.isEmpty == true { return }
        parts = newParts
    }

    /// - Parameter context: collects the compensation of this member alone.
    private func perform(_ index: Int, _ context: CommandContext) async -> Answer {
        func open<C: UndoableCommand>(_ command: C) async -> Answer {
            do {
                let performed = try await command.perform(context)
                let proof = performed.undo
                outputs?.withLock { $0[index] = performed.output }
                return .success(
                    DoneMember(member: index, undoability: command.undoability) { context in
                        try await command.undo(proof, context)
                    })
            } catch {
                let parts = context.parts?.take() ?? []
                return .failure(MemberRunEnd.Failure(member: index, error: error, parts: parts))
            }
        }
        return await open(members[index])
    }

    /// How far the members as a whole can be undone.
    var undoability: Undoability {
        var hasEffect = false
        for member in members {
            switch member.undoability {
            case .irreversible(let why): return .irreversible(why)
            case .exact: hasEffect = true
            case .noEffect: break
            }
        }
        return hasEffect ? .exact : .noEffect
    }
}

/// Undoes members, regardless of cancellation.
struct MemberCompensation: Sendable {
    let policy: TransactionOptions.Compensation
    let observer: (@Sendable (TransactionEvent) -> Void)?

    /// Undoes what a failed run left.
    ///
    /// - Parameter left: the leftovers of `end`; after the call, the work that is still not undone.
    func takeBack(_ left: Leftovers, of end: MemberRunEnd, _ context: CommandContext) async
        -> TransactionFailure
    {
        let cause = end.failures[0]
        var failure = TransactionFailure(cause: cause.error, failedMember: cause.member)
        // A member that failed after the first reports its leftovers in its error.
        for other in end.failures.dropFirst() {
            guard let member = other.member else { continue }
            switch leftovers(of: other.error) {
            case .complete: break
            case .completeExceptIrreversible: failure.leavesIrreversible = true
            case .incomplete: failure.compensationFailures.append(.init(member: member, error: other.error))
            }
        }
        return await shielded { [failure] in
            var failure = failure
            await takeBack(left, into: &failure, context)
            return failure
        }
    }

    /// Undoes a run that succeeded.
    ///
    /// - Throws: ``TransactionFailure`` if something could not be undone; it stays in `left`.
    func takeBack(_ left: Leftovers, _ context: CommandContext) async throws {
        let failure = await shielded {
            var failure = TransactionFailure(cause: CancellationError(), failedMember: nil)
            await takeBack(left, into: &failure, context)
            return failure
        }
        guard let first = failure.compensationFailures.first else { return }
        var thrown = TransactionFailure(cause: first.error, failedMember: first.member)
        thrown.compensated = failure.compensated
        thrown.compensationFailures = failure.compensationFailures
        thrown.notCompensated = failure.notCompensated
        thrown.irreversible = failure.irreversible
        throw thrown
    }

    private func takeBack(
        _ left: Leftovers, into failure: inout TransactionFailure, _ context: CommandContext
    ) async {
        if left.hasIrreversible { failure.leavesIrreversible = true }
        var stays: [DoneMember] = []
        var isStopped = false
        for each in left.members.reversed() {
            if each.undoability == .noEffect { continue }
            if isStopped {
                stays.append(each)
                failure.leftAsItIs(each)
                continue
            }
            if each.undoability.isIrreversible { failure.irreversible.append(each.member) }
            switch await undo(each, context) {
            case .success(let isWhole):
                if !isWhole { failure.leavesIrreversible = true }
                if each.isPart || each.undoability.isIrreversible { continue }
                failure.compensated.append(each.member)
                observer?(.compensated(member: each.member))
            case .failure(let error):
                stays.append(each)
                failure.compensationFailures.append(.init(member: each.member, error: error))
                observer?(.compensationFailed(member: each.member, error))
                isStopped = policy.stops
            }
        }
        left.keep(
            stays.reversed(), hasIrreversible: failure.leavesIrreversible || !failure.irreversible.isEmpty)
    }

    private enum Answer {
        /// - Parameter isWhole: whether nothing irreversible is left.
        case success(isWhole: Bool)
        case failure(any Error)
    }

    private func undo(_ done: DoneMember, _ context: CommandContext) async -> Answer {
        func attempt(_ context: CommandContext) async throws -> Answer {
            do {
                try await done.undo(context)
                return .success(isWhole: true)
            } catch is LeftIrreversible {
                return .success(isWhole: false)
            } catch let known as FailedBefore {
                return .failure(known.error)
            }
        }
        guard case .retry(let policy, let then) = policy else {
            do { return try await attempt(context) } catch { return .failure(error) }
        }
        var context = context
        return await retry(policy, then, &context, attempt)
    }

    private func retry(
        _ policy: RetryPolicy, _ next: TransactionOptions.Compensation, _ context: inout CommandContext,
        _ attempt: (CommandContext) async throws -> Answer
    ) async -> Answer {
        do {
            return try await policy.run { _ in
                defer { context.goesOn = true }
                return try await attempt(context)
            }
        } catch {
            guard case .retry(let policy, let then) = next else { return .failure(error) }
            return await retry(policy, then, &context, attempt)
        }
    }
}

extension TransactionFailure {
    /// Lists a member that was not undone: once, and only if its failed undo is not already listed.
    fileprivate mutating func leftAsItIs(_ done: DoneMember) {
        if done.isPart, compensationFailures.last?.member == done.member { return }
        if notCompensated.last != done.member { notCompensated.append(done.member) }
    }
}

extension TransactionOptions.Compensation {
    /// Whether the rollback stops at the first undo that fails.
    fileprivate var stops: Bool {
        switch self {
        case .continueOnFailure: false
        case .stopOnFailure: true
        case .retry(_, let then): then.stops
        }
    }
}
