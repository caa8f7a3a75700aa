// Which context an owner has: for a property that is written first when its owner may not have one yet, and must not
// be asked. The one thing that trees of several isolations share.

enum Owners {
    private typealias Table = LockedTable<Unmanaged<TransactionContext>>

    /// Several, by addresses: trees of different threads seldom meet at one.
    private static let tables = (0..<64).map { _ in Table() }

    private static func table(of owner: ObjectIdentifier) -> Table {
        // The low bits of an address are the same for all, and objects are made side by side.
        let address = UInt(bitPattern: owner)
        return tables[Int((address >> 4 ^ address >> 12) % 64)]
    }

    /// - Returns: another context of the owner, which is in a tree.
    static func add(_ context: TransactionContext, of owner: ObjectIdentifier) -> TransactionContext? {
        let table = table(of: owner)
        return table.locked { contexts in
            let former = contexts.updateValue(.passUnretained(context), forKey: owner)
            guard let former else { return nil }
            // Only the owner's own is of this isolation, and may be retained.
            let isOwners = former._withUnsafeGuaranteedRef { $0.owner === context.owner && $0.tree != nil }
            return isOwners ? former.takeUnretainedValue() : nil
        }
    }

    /// Unless another has taken the owner's address.
    static func remove(_ context: TransactionContext, of owner: ObjectIdentifier) {
        let table = table(of: owner)
        table.locked { contexts in
            if contexts[owner]?.toOpaque() == Unmanaged.passUnretained(context).toOpaque() {
                contexts[owner] = nil
            }
        }
    }

    /// The owner is alive, and so is a context of its: only the owner's isolation lets it go. A context whose owner's
    /// address was used again is that of another tree; it is not touched, but compared.
    static func context(of owner: AnyObject) -> TransactionContext? {
        let table = table(of: ObjectIdentifier(owner))
        return table.locked { contexts in
            guard let found = contexts[ObjectIdentifier(owner)] else { return nil }
            // Not retained before that is known: the last reference must not go under the lock.
            guard found._withUnsafeGuaranteedRef({ $0.owner === owner }) else { return nil }
            return found.takeUnretainedValue()
        }
    }
}
