// InspectedWaits.swift - threads and tasks that wait for an end just now: kept while somebody inspects. A waiter is about to
// sleep: so this is on no short way.

internal import CInspection

/// Waits that are under way.
package enum InspectedWaits {
    /// One of them.
    package struct Wait: Sendable {
        /// The run whose block waits, or has made the task that does; 0: none.
        package let waiter: UInt64
        /// For whose end.
        package let target: UInt64
        /// The kernel's number of a thread that is blocked; nil: a task.
        package let thread: Int?
        /// Whether the waiter goes on after some time, whatever comes.
        package let hasLimit: Bool
        /// When it began.
        package let since: ContinuousClock.Instant
    }

    private final class Shard: @unchecked Sendable {
        // Unchecked: the variables are used under `lock` alone.
        let lock = InspectionLock()
        var last = 0
        var waits: [Int: Wait] = [:]
    }

    private static let width = 16
    private static let shards = (0..<width).map { _ in Shard() }

    /// A wait begins. Under no lock; once the caller has asked whether anything is to be kept.
    ///
    /// - Parameter isTask: nothing blocks but a task.
    /// - Returns: for ``end(_:)``; 0: it is not kept. A word, as it is a part of what a task that waits has.
    package static func begin(_ waiter: UInt64, for target: UInt64, isTask: Bool, hasLimit: Bool) -> Int {
        let wait = Wait(
            waiter: waiter, target: target, thread: isTask ? nil : inspection_thread(), hasLimit: hasLimit,
            since: .now)
        let index = Int(target % UInt64(width))
        let shard = shards[index]
        return shard.lock.locked {
            guard inspection_is_on() else { return 0 }
            shard.last += 1
            shard.waits[shard.last] = wait
            return shard.last * width + index
        }
    }

    /// Ends a wait.
    ///
    /// - Parameter number: not 0.
    package static func end(_ number: Int) {
        let shard = shards[number % width]
        shard.lock.locked { shard.waits[number / width] = nil }
    }

    /// Some of them.
    ///
    /// - Parameter most: of each of the shards.
    /// - Returns: these, the oldest first, and how many others there are.
    package static func some(most: Int) -> (some: [Wait], others: Int) {
        var (some, count): ([Wait], Int) = ([], 0)
        for shard in shards {
            let (more, number) = shard.lock.locked {
                (shard.waits.values.prefix(min(1_024, most)).map(\.self), shard.waits.count)
            }
            some += more
            count += number
        }
        return (some.sorted { $0.since < $1.since }, count - some.count)
    }

    static func removeAll() {
        for shard in shards { shard.lock.locked { shard.waits = [:] } }
    }
}
