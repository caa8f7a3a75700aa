// InspectedWaits.swift - threads and tasks that are waiting for an end, kept while inspection is on. A waiter is about to
// sleep, so this is not a fast path.

internal import CInspection

/// Waits in progress.
package enum InspectedWaits {
    /// One wait.
    package struct Wait: Sendable {
        /// The run whose block waits, or created the waiting task; 0: none.
        package let waiter: UInt64
        /// The run whose end is awaited.
        package let target: UInt64
        /// The kernel's ID of the blocked thread; nil: a task waits.
        package let thread: Int?
        /// Whether the wait has a timeout.
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

    /// Records that a wait begins. Called under no lock, after the caller has checked that inspection is on.
    ///
    /// - Parameter isTask: a task waits, and no thread is blocked.
    /// - Returns: a number for ``end(_:)``; 0: the wait is not kept. One word, because every waiting task stores it.
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

    /// Some waits.
    ///
    /// - Parameter most: how many of each shard.
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
