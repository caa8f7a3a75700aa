// Which context an owner has: for a property that is written first when its owner may not have one yet, and must not
// be asked. The one thing that trees of several isolations share.

import Glibc

enum Owners {
    /// Not `Mutex`, which ThreadSanitizer does not see into.
    private final class Table: @unchecked Sendable {
        // Unchecked: `contexts` is used under `mutex` alone.
        let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
        var contexts: [ObjectIdentifier: Unmanaged<TransactionContext>] = [:]
        init() { pthread_mutex_init(mutex, nil) }

        func locked<Result>(_ body: () -> Result) -> Result {
            pthread_mutex_lock(mutex)
            defer { pthread_mutex_unlock(mutex) }
            return body()
        }
    }

    private static let table = Table()

    /// - Returns: whether the owner has no other context that is in a tree.
    static func add(_ context: TransactionContext, of owner: ObjectIdentifier) -> Bool {
        table.locked {
            let former = table.contexts.updateValue(.passUnretained(context), forKey: owner)
            guard let former else { return true }
            // Only the owner's own is of this isolation.
            return former._withUnsafeGuaranteedRef { $0.owner !== context.owner || $0.tree == nil }
        }
    }

    /// Unless another has taken the owner's address.
    static func remove(_ context: TransactionContext, of owner: ObjectIdentifier) {
        table.locked {
            if table.contexts[owner]?.toOpaque() == Unmanaged.passUnretained(context).toOpaque() {
                table.contexts[owner] = nil
            }
        }
    }

    /// The owner is alive, and so is a context of its: only the owner's isolation lets it go. A context whose owner's
    /// address was used again is that of another tree; it is not touched, but compared.
    static func context(of owner: AnyObject) -> TransactionContext? {
        table.locked {
            guard let found = table.contexts[ObjectIdentifier(owner)] else { return nil }
            // Not retained before that is known: the last reference must not go under the lock.
            guard found._withUnsafeGuaranteedRef({ $0.owner === owner }) else { return nil }
            return found.takeUnretainedValue()
        }
    }
}
