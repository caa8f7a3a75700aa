// The graph of tasks that wait for trees: a wait that would deadlock is refused.
//
//   I13  a waiter waits for each other waiter without a time limit that has one of its wanted trees open, or that began to
//        wait for one of them earlier. The last waiter of a cycle closes the cycle, and finds it.

/// The waiters for trees, of all isolations.
enum WaitGraph {
    /// A waiter.
    private struct Wait {
        /// The trees that it has open.
        let open: [UInt64]
        let wanted: [UInt64]
        let hasLimit: Bool
    }

    private final class Table: @unchecked Sendable {
        // Unchecked: accessed only under `lock`.
        let lock = Lock()
        var last = 0
        var waits: [Int: Wait] = [:]
        /// The waiters for each tree.
        var wanting: [UInt64: Set<Int>] = [:]
        /// For each tree, the waiters that have it open: possibly several tasks that are parts of one transaction.
        var holding: [UInt64: Set<Int>] = [:]
    }

    private static let table = Table()

    /// A task begins to wait.
    ///
    /// - Parameters:
    ///   - wanted: the serial numbers of the trees.
    ///   - open: the trees in which the task has a transaction.
    /// - Returns: a number for ``leave(_:)``; nil if the task would wait for itself.
    /// - Complexity: O(trees) for a task that has none open; otherwise O(waiters it would wait for).
    static func enter(wanting wanted: [UInt64], open: [UInt64], hasLimit: Bool) -> Int? {
        table.lock.locked {
            table.last += 1
            let number = table.last
            // A task that has no tree open closes no cycle: no waiter waits for it yet.
            if !hasLimit, !open.isEmpty, closesCircle(number, wanted, Set(open)) { return nil }
            table.waits[number] = Wait(open: open, wanted: wanted, hasLimit: hasLimit)
            for tree in wanted { table.wanting[tree, default: []].insert(number) }
            for tree in open { table.holding[tree, default: []].insert(number) }
            return number
        }
    }

    /// Ends a wait.
    static func leave(_ number: Int) {
        table.lock.locked {
            guard let wait = table.waits.removeValue(forKey: number) else { return }
            for tree in wait.wanted { remove(number, tree, from: &table.wanting) }
            for tree in wait.open { remove(number, tree, from: &table.holding) }
        }
    }

    /// The number of waiters for a tree.
    static func numberWaiting(for tree: UInt64) -> Int {
        table.lock.locked { table.wanting[tree]?.count ?? 0 }
    }

    private static func remove(_ number: Int, _ tree: UInt64, from index: inout [UInt64: Set<Int>]) {
        index[tree]?.remove(number)
        if index[tree]?.isEmpty == true { index[tree] = nil }
    }

    /// Whether a waiter that waiter `number` would wait for, directly or indirectly, waits for one of the trees in `open`.
    private static func closesCircle(_ number: Int, _ wanted: [UInt64], _ open: Set<UInt64>) -> Bool {
        var seen: Set<Int> = []
        var walk = others(than: number, wanted)
        while let next = walk.popLast() {
            guard seen.insert(next).inserted, let wait = table.waits[next], !wait.hasLimit else { continue }
            if wait.wanted.contains(where: open.contains) { return true }
            walk += others(than: next, wait.wanted)
        }
        return false
    }

    private static func others(than number: Int, _ wanted: [UInt64]) -> [Int] {
        wanted.flatMap { tree in
            (table.holding[tree] ?? []) + (table.wanting[tree] ?? []).filter { $0 < number }
        }
    }
}
