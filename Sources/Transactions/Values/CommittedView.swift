// A tree as other isolations see it: one value per commit, published atomically, read without waiting.
//
//   I9  a slot's value is written only while it is not current and has no reader.
//   P2  reader: increment the count, then load the current slot; writer: store another current slot, then load the count.
//       All are sequentially consistent: when a reader and the writer overlap, the writer sees the reader, or the reader
//       sees that the slot is no longer current and reads nothing.
//   P3  a reader's decrement (release) -> the writer's load of the count: a value is read before it is overwritten.

import CompositeOperationsBasics
import Synchronization

/// A value computed from a tree after each commit, for readers in any isolation.
///
/// A reader sees the value of one commit, never that of a transaction in progress. The tree keeps `compute` while the
/// view exists, and releases it at the first commit after that. If the view lives as long as the root, `compute` should
/// capture the root weakly.
public final class CommittedView<Value: Sendable>: Sendable {
    private let published: Published<Value>

    /// Creates a view with the current value of the tree.
    ///
    /// - Parameters:
    ///   - root: any member of the tree.
    ///   - compute: called in the tree's isolation, now and after the last hook of each commit. It must not commit a
    ///     transaction of the tree.
    /// - Precondition: no transaction is active, and the member has not left its tree.
    public init(of root: any Transactable, _ compute: @escaping () -> Value) {
        guard let tree = root.transactionContext.tree else {
            fatalError("CommittedView: the member has left its tree")
        }
        demand(tree.active == nil, "CommittedView: a view cannot be made while a transaction is active")
        published = Published(compute())
        tree.views.append(View(published: published, compute: compute))
    }

    /// The value after the last commit. Does not wait.
    public var value: Value { published.value }

    /// How many commits there have been since the view was created.
    public var version: Int { published.version }
}

protocol PublishedView {
    /// Computes and publishes the value; false when the view no longer exists.
    func publish() -> Bool
    var isRead: Bool { get }
}

private struct View<Value: Sendable>: PublishedView {
    weak var published: Published<Value>?
    let compute: () -> Value

    func publish() -> Bool {
        guard let published else { return false }
        published.write(compute)
        return true
    }

    var isRead: Bool { published != nil }
}

private final class Published<Value: Sendable>: @unchecked Sendable {
    /// A slot is created when every other one is current or has readers, and is released with the last reference to the
    /// view.
    final class Slot {
        let readers = Atomic<Int>(0)
        /// A separate allocation: an optional value would need a lookup of its type for each reader.
        @exclusivity(unchecked) private var place = UnsafeMutablePointer<Value>.allocate(capacity: 1)
        @exclusivity(unchecked) private var isFull = false
        @exclusivity(unchecked) private(set) var version = 0
        let older: Slot?

        init(_ value: Value, version: Int, older: Slot?) {
            self.older = older
            fill(value, version)
        }

        deinit {
            empty()
            place.deallocate()
        }

        /// The value of a slot that is current, or was when its reader was counted.
        var value: Value { place.pointee }

        func fill(_ value: Value, _ version: Int) {
            empty()
            place.initialize(to: value)
            isFull = true
            self.version = version
        }

        func empty() {
            if !isFull { return }
            isFull = false
            // The value's `deinit` may be a user's, and may read the view, whose current slot is already another one.
            let gone = place.move()
            withExtendedLifetime(gone) {}
        }
    }

    // Unchecked: `newest` and `isComputing` are used only by the writer; I9 guards the content of a slot.
    private var newest: Slot
    private var isComputing = false
    private let current: Atomic<Unmanaged<Slot>>
    private let instance = Instance(.views)

    init(_ value: Value) {
        newest = Slot(value, version: 0, older: nil)
        current = Atomic(.passUnretained(newest))
    }

    var value: Value {
        let slot = enter()
        defer { leave(slot) }
        return slot._withUnsafeGuaranteedRef { $0.value }
    }

    var version: Int {
        let slot = enter()
        defer { leave(slot) }
        return slot._withUnsafeGuaranteedRef { $0.version }
    }

    /// - Returns: the current slot, with one more reader, so the slot stays unchanged (P2).
    @inline(__always)
    private func enter() -> Unmanaged<Slot> {
        while true {
            let slot = current.load(ordering: .sequentiallyConsistent)
            slot._withUnsafeGuaranteedRef { _ = $0.readers.add(1, ordering: .sequentiallyConsistent) }
            if current.load(ordering: .sequentiallyConsistent).toOpaque() == slot.toOpaque() { return slot }
            leave(slot)
        }
    }

    @inline(__always)
    private func leave(_ slot: Unmanaged<Slot>) {
        slot._withUnsafeGuaranteedRef { _ = $0.readers.subtract(1, ordering: .releasing) }  // P3
    }

    func write(_ compute: () -> Value) {
        demand(!isComputing, "CommittedView: a transaction of the tree was committed by a view's computation")
        isComputing = true
        let value = compute()
        isComputing = false
        let old = current.load(ordering: .relaxed).takeUnretainedValue()
        let version = old.version + 1
        var free: Slot? = newest
        while let slot = free, slot === old || slot.readers.load(ordering: .sequentiallyConsistent) != 0 {
            free = slot.older
        }
        let slot: Slot
        if let free {
            slot = free
            slot.fill(value, version)
        } else {
            slot = Slot(value, version: version, older: newest)
            newest = slot
        }
        current.store(.passUnretained(slot), ordering: .sequentiallyConsistent)
        // Releases the old value now, not only when the slot is used again.
        if old.readers.load(ordering: .sequentiallyConsistent) == 0 { old.empty() }
    }
}
