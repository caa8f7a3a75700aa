// JournalWriter.swift - gives records their numbers, and writes many at a time: what waited during one commit is the next.
//
// Invariants:
//   I1  records are committed in the order of their numbers, a contiguous piece at a time: what is durable is always the
//       beginning of what was added.
//   I2  after a commit that failed nothing is committed, by this process.
//   I3  at most one drain runs. Whoever leaves a waiter behind, and finds none running, starts one; it ends when nobody waits,
//       or by telling all who do why nothing more is written.
//
// Orderings:
//   P1  `add`, then `commit` returns -> the record is durable, and all that were added before it.
//   P2  `add` of B after `add` of A: B durable -> A durable (I1). So what only has to come before something durable need
//       not be waited for.

internal import CompositeOperationsBasics
package import Dispatch
internal import Foundation
@_spi(Faces) internal import Runs

/// Writes the journal. No thread of a caller's waits: the work is done on a dispatch queue, which has threads to spare.
package final class JournalWriter: Sendable {
    private struct State {
        var last: Int64
        var durable: Int64
        var checksum: UInt64
        var pending: [JournalRecord] = []
        /// Each for the record of its mark, and so in their order.
        var waiters = WaitList()
        var isDraining = false
        var failure: JournalError?
    }

    private let store: any JournalStore
    private let state: Guarded<State>
    private let queue: DispatchQueue
    private let instance = Instance(.writers)

    /// `log` is what `store` holds.
    package init(_ store: any JournalStore, _ log: JournalLog, _ queue: DispatchQueue) {
        self.store = store
        self.queue = queue
        state = Guarded(State(last: log.last, durable: log.last, checksum: log.checksum))
    }

    /// Why nothing more is written.
    package var failure: JournalError? { state.withLock { $0.failure } }

    /// Adds records, which have no numbers yet, at the end; `run` 0 stands for the number of the first of them.
    ///
    /// - Returns: the records as they will be, but for their checksums.
    /// - Throws: ``failure``; ``JournalError/tooLarge(size:limit:)``, and none was added: the commit of all would fail.
    @discardableResult
    package func add(_ records: [JournalRecord]) throws -> [JournalRecord] {
        let limit = store.maximumSize
        for size in records.map(\.size) where size > limit {
            throw JournalError.tooLarge(size: size, limit: limit)
        }
        let answer = state.withLock { state -> Result<[JournalRecord], JournalError> in
            if let failure = state.failure { return .failure(failure) }
            let first = state.last + 1
            var numbered = records
            for index in numbered.indices {
                state.last += 1
                numbered[index].sequence = state.last
                if numbered[index].run == 0 { numbered[index].run = first }
            }
            state.pending += numbered
            return .success(numbered)
        }
        return try answer.get()
    }

    /// Returns when all that was added before is durable.
    package func commit() async throws {
        var last: Int64 = 0
        var refusal: JournalError?
        await Waiter.wait { waiter in
            let (registration, drains) = state.withLock { state -> (Waiter.Registration, Bool) in
                (last, refusal) = (state.last, state.failure)
                if refusal != nil || state.durable == last { return (.isOver, false) }
                defer { state.isDraining = true }
                return (state.waiters.append(waiter, mark: last), !state.isDraining)  // I3
            }
            if drains { queue.async { self.drain() } }
            return registration
        }
        let failure = refusal ?? state.withLock { state in state.durable >= last ? nil : state.failure }
        if let failure { throw failure }
    }

    /// Calls `body` on the queue of the journal, where it may block.
    ///
    /// - Throws: ``failure``, too: of what could not be written nobody knows whether it is there.
    package func read<Value: Sendable>(
        _ body: @escaping @Sendable (any JournalStore) throws -> Value
    ) async throws -> Value {
        try await queue.perform { [self] in
            if let failure { throw failure }
            do { return try body(store) } catch { throw JournalError(reading: store, error) }
        }
    }

    /// Nothing can be added any more; what was added is written, and the store closed.
    package func close() async {
        do { try await commit() } catch {}  // what could not be written is in doubt, as after a crash
        state.withLock { state in if state.failure == nil { state.failure = .closed } }
        try? await queue.perform { [store] in store.close() }
    }

    /// One commit. What waits then is the next one, after the reads that came meanwhile.
    private func drain() {
        if let failure { return fail(failure) }  // they came while the last commit went on, before that
        let taken = state.withLock { state -> (records: [JournalRecord], checksum: UInt64)? in
            if state.waiters.isEmpty {
                state.isDraining = false
                return nil
            }
            defer { state.pending = [] }
            return (state.pending, state.checksum)
        }
        guard var batch = taken else { return }
        for index in batch.records.indices {
            batch.checksum = batch.records[index].checksum(after: batch.checksum)
            batch.records[index].checksum = batch.checksum
        }
        do { try store.commit(batch.records) } catch {
            return fail(error as? JournalError ?? .storage(error))
        }
        state.withLock { [batch] state in
            state.durable = batch.records.last?.sequence ?? state.durable
            state.checksum = batch.checksum
            return state.waiters.take { $0.mark <= state.durable }
        }.wake()
        queue.async { self.drain() }
    }

    private func fail(_ failure: JournalError) {
        state.withLock { state in
            state.failure = failure  // I2
            state.isDraining = false
            return state.waiters.takeAll()
        }.wake()
    }
}
