// What other isolations see of a tree: one value per commit, exchanged in one step, read without waiting.
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
    public var value: Value { published.read().value }

    /// How many commits there have been since the view was made.
    public var version: Int { published.read().version }
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
        var content: (value: Value, version: Int)?
        let older: Slot?

        init(_ content: (value: Value, version: Int), older: Slot?) {
            self.content = content
            self.older = older
        }
    }

    // Unchecked: `newest` and `isComputing` are the writer's alone, a slot's content is guarded by I9.
    private var newest: Slot
    private var isComputing = false
    private let current: Atomic<Unmanaged<Slot>>
    private let instance = Instance(.views)

    init(_ value: Value) {
        newest = Slot((value, 0), older: nil)
        current = Atomic(.passUnretained(newest))
    }

    func read() -> (value: Value, version: Int) {
        while true {
            let slot = current.load(ordering: .sequentiallyConsistent)
            let content: (value: Value, version: Int)? = slot._withUnsafeGuaranteedRef { slot in
                slot.readers.add(1, ordering: .sequentiallyConsistent)
                defer { slot.readers.subtract(1, ordering: .sequentiallyConsistent) }
                let now = current.load(ordering: .sequentiallyConsistent)
                return now.toOpaque() == Unmanaged.passUnretained(slot).toOpaque() ? slot.content : nil
            }
            if let content { return content }
        }
    }

    func write(_ compute: () -> Value) {
        demand(!isComputing, "CommittedView: a transaction of the tree was committed by a view's computation")
        isComputing = true
        let value = compute()
        isComputing = false
        let old = current.load(ordering: .relaxed).takeUnretainedValue()
        let content = (value, (old.content?.version ?? 0) + 1)
        var free: Slot? = newest
        while let slot = free, slot === old || slot.readers.load(ordering: .sequentiallyConsistent) != 0 {
            free = slot.older
        }
        let slot: Slot
        if let free {
            slot = free
            slot.content = content
        } else {
            slot = Slot(content, older: newest)
            newest = slot
        }
        current.store(.passUnretained(slot), ordering: .sequentiallyConsistent)
        // Not kept until the slot is used again.
        if old.readers.load(ordering: .sequentiallyConsistent) == 0 { old.content = nil }
    }
}
