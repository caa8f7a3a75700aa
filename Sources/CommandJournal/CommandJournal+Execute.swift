// CommandJournal+Execute.swift - executes one command, or several, all or nothing.

public import Commands
internal import CInspection
internal import CompositeOperationsBasics
internal import Foundation
@_spi(Faces) internal import Runs

extension CommandJournal {
    /// Runs a command.
    ///
    /// A command whose key is known is not run again: its recorded result is returned or thrown, after its run has ended. A
    /// command cannot execute another command of the journal inside itself, because nothing would undo the inner one.
    ///
    /// - Parameter context: the context of the enclosing run, if any.
    /// - Returns: its output, after it is durable.
    /// - Throws: the error of the command, after it is durable; ``JournalError/recorded(key:_:text:)``,
    ///   ``JournalError/keyConflict(_:)``, ``JournalError/keyInDoubt(_:)`` and ``JournalError/undecodable(type:sequence:_:)``, if
    ///   its key is known, and ``JournalError/corrupt(path:sequence:reason:)``, if its records have been damaged since the journal
    ///   was opened; ``JournalError/unknownType(_:sequence:)``; an `EncodingError` or ``JournalError/tooLarge(size:limit:)``, when
    ///   the command cannot be encoded, in which case it has not begun, or when its result cannot be encoded, in which case the
    ///   command was undone; ``JournalError/storage(_:)`` and ``JournalError/fileReplaced(path:)``, when the outcome is unknown;
    ///   ``JournalError/reentrant``, ``JournalError/needsRecovery``, ``JournalError/busy``, ``JournalError/closed`` and
    ///   ``JournalError/unusableKey(_:)``; a `CancellationError`, when the call is cancelled before the command has begun.
    public func execute<C: JournaledCommand>(
        _ command: C, _ context: CommandContext = CommandContext()
    ) async throws -> C.Output {
        let written = try types.write(command)
        return try await running(written.key.map { [$0] } ?? []) {
            guard let key = written.key, let recorded = try await self.recorded(written, key) else {
                return nil
            }
            return Known(run: recorded.run) { try self.answer(recorded, C.self, key) }
        } begin: {
            try context.checkCancellation()  // from here on it has begun
            let run = try JournaledRun(.one, key: nil, [written], self.writer)
            let member = JournaledMember(command: command, index: 0, run: run, past: .waiting)
            return try await self.finish(run, of: TransactionCommand(member), context)
        }
    }

    /// Runs commands, all or nothing: when one fails, those that were done are undone, in reverse order.
    ///
    /// - Parameters:
    ///   - key: names this run, as a command's key names the command; with a key, the run is not executed a second time. Keys of
    ///     its members must be new.
    ///   - options: as for a `TransactionCommand`. A recovery runs one member at a time, and has its own compensation policy.
    ///   - context: the context of the enclosing run, if any.
    /// - Throws: as ``execute(_:_:)``, with a `TransactionFailure` for the error of a member; ``JournalError/keyTaken(_:)``;
    ///   ``JournalError/keyTwice(_:)``.
    public func execute(
        allOrNothing members: [any JournaledCommand], key: String? = nil,
        options: TransactionOptions = TransactionOptions(), _ context: CommandContext = CommandContext()
    ) async throws {
        try await execute(members, key, options, context, answer: { _ in }, output: { _ in })
    }

    /// Runs commands of one type, all or nothing: see ``execute(allOrNothing:key:options:_:)->()``.
    ///
    /// - Returns: their outputs, in the order of the commands, after they are durable.
    @discardableResult
    public func execute<Member: JournaledCommand>(
        allOrNothing members: [Member], key: String? = nil,
        options: TransactionOptions = TransactionOptions(), _ context: CommandContext = CommandContext()
    ) async throws -> [Member.Output] {
        try await execute(members, key, options, context) { run in
            try run.members.map { try CommandTypes.output(Member.self, of: $0) }
        } output: { outputs in
            outputs.map { $0 as! Member.Output }
        }
    }

    /// Runs commands, all or nothing: see ``execute(allOrNothing:key:options:_:)->()``.
    ///
    /// - Returns: their outputs, after they are durable.
    @discardableResult
    public func execute<each Member: JournaledCommand>(
        allOrNothing members: repeat each Member, key: String? = nil,
        options: TransactionOptions = TransactionOptions(), context: CommandContext = CommandContext()
    ) async throws -> (repeat (each Member).Output) {
        var all: [any JournaledCommand] = []
        for member in repeat each members { all.append(member) }
        return try await execute(all, key, options, context) { run in
            var next = 0
            func take<Each: JournaledCommand>(_: Each.Type) throws -> Each.Output {
                defer { next += 1 }
                return try CommandTypes.output(Each.self, of: run.members[next])
            }
            return (repeat try take((each Member).self))
        } output: { outputs in
            var next = 0
            func take<Value>(_: Value.Type) -> Value {
                defer { next += 1 }
                return outputs[next] as! Value
            }
            return (repeat take((each Member).Output.self))
        }
    }

    /// - Parameters:
    ///   - answer: the result of a recorded run that succeeded.
    ///   - output: the result of this run, from the outputs of its members.
    private func execute<Output: Sendable>(
        _ members: [any JournaledCommand], _ key: String?, _ options: TransactionOptions,
        _ context: CommandContext, answer: @escaping (JournalRun) throws -> Output,
        output: ([any Sendable]) -> Output
    ) async throws -> Output {
        let written = try members.map { try types.write($0) }
        let key = try CommandTypes.checked(key)
        let keys = written.compactMap(\.key) + (key.map { [$0] } ?? [])
        var seen: Set<String> = []
        for key in keys where !seen.insert(key).inserted { throw JournalError.keyTwice(key) }
        return try await running(keys) { () -> Known<Output>? in
            guard let key, let recorded = try await self.recordedRun(written, key) else { return nil }
            return Known(run: recorded.run) {
                try self.demandSuccess(recorded, key)
                return try answer(recorded.run)
            }
        } begin: {
            for member in written {
                guard let key = member.key, try await self.recorded(member, key) != nil else { continue }
                throw JournalError.keyTaken(key)
            }
            try context.checkCancellation()  // from here on the run has begun
            let run = try JournaledRun(.allOrNothing, key: key, written, self.writer)
            let wrapped = members.enumerated().map { index, member -> any UndoableCommand in
                func open<C: JournaledCommand>(_ command: C) -> any UndoableCommand {
                    JournaledMember(command: command, index: index, run: run, past: .waiting)
                }
                return open(member)
            }
            var inner = options
            inner.mapError = { $0 }  // the error is inspected first
            do {
                let transaction = TransactionCommand(gathering: wrapped, options: inner)
                return output(try await self.finish(run, of: transaction, context))
            } catch let error as JournalError {
                throw error
            } catch let left as LeftOpen {
                throw LeftOpen(run: left.run, error: options.mapError(left.error))
            } catch { throw options.mapError(error) }
        }
    }

    /// A run that is already recorded, and its answer.
    private struct Known<Value> {
        let run: JournalRun
        let answer: () throws -> Value
    }

    /// Begins a run that is not recorded yet, while no other run works on these keys.
    private func running<Value>(
        _ keys: [String], known: () async throws -> Known<Value>?, begin: () async throws -> Value
    ) async throws -> Value {
        if ReentrancyMark.isInside(writer) { throw JournalError.reentrant }
        while true {
            switch try live.begin(keys) {
            case .begun(let end):
                var open: JournalRun?
                defer { live.end(end, keys, left: open) }
                if let known = try await known() { return try known.answer() }
                do { return try await begin() } catch let left as LeftOpen {
                    open = left.run
                    throw left.error
                }
            case .taken(let other):
                await other.wait()
                try Task.checkCancellation()
                // A run that is no longer being worked on does not change: all its waiters may read it concurrently.
                if let known = try await known(), live.isOver(known.run) { return try known.answer() }
            }
        }
    }

    /// Runs a transaction of members of `run`, and ends the run.
    ///
    /// - Parameter leavesIrreversible: whether an irreversible command of the run was recorded as undone before.
    func finish<Output: Sendable>(
        _ run: JournaledRun, of transaction: TransactionCommand<Output>, _ context: CommandContext,
        leavesIrreversible: Bool = false
    ) async throws -> Output {
        guard inspection_traces(),
            let trace = RunTrace.begin(.durableRun, run.nameForTraces, number: UInt64(clamping: run.number))
        else { return try await finishUntraced(run, of: transaction, context, leavesIrreversible) }
        let result = await Result<Output, any Error>.of {
            try await trace.bind {
                try await finishUntraced(run, of: transaction, context, leavesIrreversible)
            }
        }
        trace.end(result.error.map { .failed($0) })
        return try result.get()
    }

    private func finishUntraced<Output: Sendable>(
        _ run: JournaledRun, of transaction: TransactionCommand<Output>, _ context: CommandContext,
        _ leavesIrreversible: Bool
    ) async throws -> Output {
        var leavesIrreversible = leavesIrreversible
        var result = await Result<Output, any Error>.of { try await transaction.execute(context) }
        if case .success = result, let error = run.unrecorded {
            result = .failure(error)
            if writer.failure == nil {
                if case .irreversible = transaction.undoability { leavesIrreversible = true }
                do { try await transaction.undo() } catch { result = .failure(error) }
            }
        }
        // A run whose records could not be written is left as after a crash: no outcome is recorded.
        if let failure = writer.failure { throw failure }
        var outcome = JournalOutcome(of: run.run, result)
        if outcome == .rolledBack, leavesIrreversible { outcome = .rolledBackExceptIrreversible }
        try await run.end(outcome, result.error)
        if run.run.outcome == nil { throw LeftOpen(run: run.run, error: result.error ?? JournalError.busy) }
        return try result.get()
    }

    // MARK: Recording

    /// A run, and the place of a command in it.
    struct Recorded: Sendable {
        let run: JournalRun
        let member: Int?
    }

    private func find(_ key: String) async throws -> Recorded? {
        try await writer.read { [otherKeys] store in
            // A file of an earlier version may hold the key in non-canonical form.
            let other = otherKeys[key]
            guard let place = try store.place(ofKey: key) ?? other.flatMap({ try store.place(ofKey: $0) })
            else { return nil }
            var run = JournalRun(number: place.run)
            for record in try store.records(ofRun: place.run) {
                do { try run.apply(record) } catch let error as IllegalRecord {
                    throw JournalCorruption(sequence: record.sequence, reason: error.reason)
                }
            }
            // The run was complete when the journal was opened.
            if run.kind == nil || place.member.map(run.members.indices.contains) == false {
                throw JournalCorruption(sequence: place.run, reason: "its run is no longer complete")
            }
            return Recorded(run: run, member: place.member)
        }
    }

    /// - Throws: ``JournalError/keyConflict(_:)``, when the key names another command.
    private func recorded(_ command: WrittenCommand, _ key: String) async throws -> Recorded? {
        guard let found = try await find(key) else { return nil }
        guard let member = found.member, try types.isSame(found.run.members[member], as: command) else {
            throw JournalError.keyConflict(key)
        }
        return found
    }

    private func recordedRun(_ members: [WrittenCommand], _ key: String) async throws -> Recorded? {
        guard let found = try await find(key) else { return nil }
        guard found.member == nil, found.run.members.count == members.count,
            try zip(found.run.members, members).allSatisfy({ try types.isSame($0, as: $1) })
        else { throw JournalError.keyConflict(key) }
        return found
    }

    private func answer<C: JournaledCommand>(_ recorded: Recorded, _: C.Type, _ key: String) throws
        -> C.Output
    {
        let member = recorded.run.members[recorded.member ?? 0]
        guard let outcome = recorded.run.outcome else { throw JournalError.keyInDoubt(key) }
        guard member.phase == .done else {
            throw JournalError.recorded(key: key, outcome, text: member.text ?? recorded.run.text ?? "")
        }
        return try CommandTypes.output(C.self, of: member)
    }

    private func demandSuccess(_ recorded: Recorded, _ key: String) throws {
        guard let outcome = recorded.run.outcome else { throw JournalError.keyInDoubt(key) }
        guard outcome == .finished else {
            throw JournalError.recorded(key: key, outcome, text: recorded.run.text ?? "")
        }
    }
}

/// A run that leaves something in doubt, and the error for its caller.
private struct LeftOpen: Error {
    let run: JournalRun
    let error: any Error
}

extension JournalOutcome {
    /// The outcome of a run with the given `result`.
    init<Output>(of run: JournalRun, _ result: Result<Output, any Error>) {
        guard case .failure(let error) = result else {
            self = .finished
            return
        }
        if run.members.contains(where: { $0.phase == .undoFailed }) || run.left == .incomplete {
            self = .incomplete
            return
        }
        let rollback = (error as? TransactionFailure)?.rollback
        let wasUndone = run.members.contains { $0.phase == .undone }
        switch rollback {
        case .incomplete?: self = .incomplete
        case .completeExceptIrreversible?: self = .rolledBackExceptIrreversible
        case .complete? where run.left != nil: self = .rolledBackExceptIrreversible
        case .complete? where run.kind == .allOrNothing: self = .rolledBack
        case .complete?, nil: self = wasUndone ? .rolledBack : .failed
        }
    }
}

extension Result where Failure == any Error {
    static func of(_ body: () async throws -> Success) async -> Self {
        do { return .success(try await body()) } catch { return .failure(error) }
    }

    var error: (any Error)? { if case .failure(let error) = self { error } else { nil } }
}
