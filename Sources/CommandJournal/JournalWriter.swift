// JournalWriter.swift - numbers records and writes them in batches: the records that arrive during one commit form the next.
//
// Invariants:
//   I1  records are committed in the order of their numbers, in contiguous batches: the durable records are always a prefix of
//       the added ones.
//   I2  after a failed commit this process commits nothing more.
//   I3  at most one drain runs. A caller that enqueues a waiter and finds no drain running starts one. The drain ends when
//       there are no waiters, or after a failure, which it reports to all waiters.
//
// Orderings:
//   P1  `add`, then `commit` returns -> the record is durable, and so are all records added before it.
//   P2  `add` of B after `add` of A: B durable -> A durable (I1). So a record that only has to precede another durable record
//       need not be waited for.

internal import CompositeOperationsBasics
package import Dispatch
internal import Foundation
@_spi(Faces) internal import Runs

/// Writes the journal. No caller's thread blocks: the work is done on a dispatch queue, which has threads to spare.
package final class JournalWriter: Sendable {
    private struct State {
        var last: Int64
        var durable: Int64
        var checksum: UInt64
        var pending: [JournalRecord] = []
        /// The mark of a waiter is the number of the record that it waits for; sorted by mark.
        var waiters = WaitList()
        var isDraining = false
        var failure: JournalError?
    }

    private let store: any JournalStore
    private let state: Guarded<State>
    private let queue: DispatchQueue
    private let instance = Instance(.writers)

    /// - Parameter log: the contents of `store`.
    package init(_ store: any JournalStore, _ log: JournalLog, _ queue: DispatchQueue) {
        self.store = store
        self.queue = queue
        state = Guarded(State(last: log.last, durable: log.last, checksum: log.checksum))
    }

    /// The reason that nothing more is written.
    package var failure: JournalError? { state.withLock { $0.failure } }

    /// Appends records that have no numbers yet; `run` 0 stands for the number of the first of them.
    ///
    /// - Returns: the records as they will be written, except for their checksums.
    /// - Throws: ``failure``; ``JournalError/tooLarge(size:limit:)``, in which case none was added: the commit of the batch
    ///   would fail.
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

    /// Returns when all records added before are durable.
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
    /// - Throws: also ``failure``: records that could not be written may or may not be in the file.
    package func read<Value: Sendable>(
        _ body: @escaping @Sendable (any JournalStore) throws -> Value
    ) async throws -> Value {
        try await queue.perform { [self] in
            if let failure { throw failure }
            do { return try body(store) } catch { throw JournalError(reading: store, error) }
        }
    }

    /// Refuses further records, writes the added ones, and closes the store.
    package func close() async {
        do { try await commit() } catch {}  // unwritten records are in doubt, as after a crash
        state.withLock { state in if state.failure == nil { state.failure = .closed } }
        try? await queue.perform { [store] in store.close() }
    }

    /// Makes one commit. Records that wait afterwards form the next commit, which follows the reads that were queued
    /// meanwhile.
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
