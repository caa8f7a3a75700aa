// MemberRun.swift - several commands, run and taken back: what transaction commands and macros share.
//
// Invariants:
//   I1  `done` holds what returned, in the order in which it did; each of them once. It belongs to one run.
//   I2  after the first failure, or a cancellation, nothing starts; what runs is awaited.
//   I3  taking back goes through `done` backwards, once. So what a command used is taken back after that command.

internal import CompositeOperations

/// A command that returned, and how it is taken back.
struct DoneMember: Sendable {
    let member: Int
    let undoability: Undoability
    let undo: @Sendable (CommandContext) async throws -> Void
}

/// How a run of several ended.
struct MemberRunEnd: Sendable {
    struct Failure: Sendable {
        /// nil: nobody threw; the run was cancelled.
        let member: Int?
        let error: any Error
        var parts: [FailureParts.Part] = []
    }

    var done: [DoneMember] = []
    /// The first one is the cause.
    var failures: [Failure] = []
}

/// Several commands that run as one.
struct MemberRun: Sendable {
    let members: [any UndoableCommand]
    let order: TransactionOptions.Order
    var observer: (@Sendable (TransactionEvent) -> Void)?

    /// Runs them, until one fails.
    func perform(_ context: CommandContext) async -> MemberRunEnd {
        switch order {
        case .sequential: await performInOrder(context)
        case .parallel(let limit): await performAtOnce(limit, context)
        }
    }

    private func performInOrder(_ context: CommandContext) async -> MemberRunEnd {
        var end = MemberRunEnd()
        for index in members.indices {
            if context.isCancelled {
                end.failures = [MemberRunEnd.Failure(member: nil, error: CancellationError())]
                break
            }
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
        let lane = LaneRun.innermost
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
                    await LaneRun.inTask(of: lane) {
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

    private func perform(_ index: Int, _ context: CommandContext) async -> Answer {
        func open<C: UndoableCommand>(_ command: C) async -> Answer {
            let parts = FailureParts()
            var inner = context
            inner.parts = parts
            do {
                let proof = try await command.perform(inner).undo
                return .success(
                    DoneMember(member: index, undoability: command.undoability) { context in
                        try await command.undo(proof, context)
                    })
            } catch {
                return .failure(MemberRunEnd.Failure(member: index, error: error, parts: parts.take()))
            }
        }
        return await open(members[index])
    }

    /// What taking all of them back can achieve.
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

/// Takes members back, whoever is cancelled meanwhile.
struct MemberCompensation: Sendable {
    let policy: TransactionOptions.Compensation
    let observer: (@Sendable (TransactionEvent) -> Void)?

    /// Takes back what a failed run left.
    func takeBack(_ end: MemberRunEnd, _ context: CommandContext) async -> TransactionFailure {
        let cause = end.failures[0]
        var failure = TransactionFailure(cause: cause.error, failedMember: cause.member)
        // One that failed after the first says in its error what it left.
        for other in end.failures.dropFirst() {
            guard let member = other.member, let inner = other.error as? TransactionFailure else { continue }
            switch inner.rollback {
            case .complete: break
            case .completeExceptIrreversible: failure.leavesIrreversible = true
            case .incomplete: failure.compensationFailures.append(.init(member: member, error: inner))
            }
        }
        return await shielded { [failure] in
            var failure = failure
            for each in end.failures.reversed() {
                for part in each.parts {
                    do { try await part(context) } catch is LeftIrreversible {
                        failure.leavesIrreversible = true
                    } catch {
                        failure.compensationFailures.append(.init(member: each.member ?? 0, error: error))
                        observer?(.compensationFailed(member: each.member ?? 0, error))
                    }
                }
            }
            await takeBack(end.done, into: &failure, context)
            return failure
        }
    }

    /// Takes back a run that succeeded.
    ///
    /// - Throws: ``TransactionFailure`` when something could not be taken back.
    func takeBack(_ done: [DoneMember], _ context: CommandContext) async throws {
        let failure = await shielded {
            var failure = TransactionFailure(cause: CancellationError(), failedMember: nil)
            await takeBack(done, into: &failure, context)
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
        _ done: [DoneMember], into failure: inout TransactionFailure, _ context: CommandContext
    ) async {
        var isStopped = false
        for each in done.reversed() {
            if each.undoability == .noEffect { continue }
            if isStopped {
                failure.notCompensated.append(each.member)
                continue
            }
            if each.undoability.isIrreversible { failure.irreversible.append(each.member) }
            if let (error, stops) = await undo(each, context) {
                failure.compensationFailures.append(.init(member: each.member, error: error))
                observer?(.compensationFailed(member: each.member, error))
                isStopped = stops
            } else if !each.undoability.isIrreversible {
                failure.compensated.append(each.member)
                observer?(.compensated(member: each.member))
            }
        }
    }

    /// - Returns: nil, or the last error, and whether the rest is left as it is.
    private func undo(_ done: DoneMember, _ context: CommandContext) async -> (any Error, Bool)? {
        var last: (any Error)?
        var next = policy
        while true {
            switch next {
            case .retry(let policy, let then):
                do {
                    try await policy.run { _ in try await done.undo(context) }
                    return nil
                } catch { last = error }
                next = then
            case .continueOnFailure, .stopOnFailure:
                let stops = if case .stopOnFailure = next { true } else { false }
                if let last { return (last, stops) }
                do {
                    try await done.undo(context)
                    return nil
                } catch { return (error, stops) }
            }
        }
    }
}
