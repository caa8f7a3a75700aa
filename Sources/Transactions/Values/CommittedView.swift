// A tree as other isolations see it: one value per commit, exchanged in one step, read without waiting.
//
//   I9  a slot's value is written only while it is not current and has no reader.
//   P2  reader: count up, then look which slot is current; writer: make another current, then look at the count. Both are
//       sequentially consistent: of two that overlap, the writer sees the reader, or the reader sees that the slot is no
//       longer current, and reads nothing.
//   P3  a reader's count down (release) -> the writer's look at the count: what was read was read before it is
//       overwritten.

import CompositeOperationsBasics
import Synchronization

/// A value computed from a tree after each commit, for readers in any isolation.
///
/// A reader sees the value of one commit, never that of a transaction under way. The tree keeps `compute` as long as the
/// view exists, and lets it go at the first commit after that; let it capture the root weakly if the view lives as long.
public final class CommittedView<Value: Sendable>: Sendable {
    private let published: Published<Value>

    /// Makes a view with the value that the tree has now.
    ///
    /// - Parameters:
    ///   - root: any member of the tree.
    ///   - compute: is called in the tree's isolation, now and after the last hook of each commit. It must not commit a
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

    /// How many commits there have been since the view was made.
    public var version: Int { published.version }
}

protocol PublishedView {
    /// Computes and publishes; false when nobody can read it any more.
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
    /// Slots are made when all others have readers, and go with the last reference to the view.
    final class Slot {
        let readers = Atomic<Int>(0)
        /// A place of its own: an optional value would be of a type that is looked up for each reader.
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

        /// Of one that is current, or has been when its reader was counted.
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
            // Its `deinit` may be anyone's, and read the view, which has another slot by now.
            let gone = place.move()
            withExtendedLifetime(gone) {}
        }
    }

    // Unchecked: `newest` and `isComputing` are the writer's alone, a slot's content is guarded by I9.
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

    /// - Returns: the current slot, with one more reader, so that it stays as it is (P2).
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
        // Not kept until the slot is used again.
        if old.readers.load(ordering: .sequentiallyConsistent) == 0 { old.empty() }
    }
}
