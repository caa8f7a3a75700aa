// The contexts of owners. A property looks its context up at its first write, when the owner may not have one yet, so
// its `transactionContext` must not be read. Trees of several isolations share this table.

enum Owners {
    private typealias Table = LockedTable<Unmanaged<TransactionContext>>

    /// Several tables, selected by address: trees of different threads seldom contend for one.
    private static let tables = (0..<64).map { _ in Table() }

    private static func table(of owner: ObjectIdentifier) -> Table {
        // The low bits are the same in all addresses, and objects are allocated side by side.
        let address = UInt(bitPattern: owner)
        return tables[Int((address >> 4 ^ address >> 12) % 64)]
    }

    /// - Returns: another context of the owner that is in a tree.
    static func add(_ context: TransactionContext, of owner: ObjectIdentifier) -> TransactionContext? {
        let table = table(of: owner)
        return table.locked { contexts in
            let former = contexts.updateValue(.passUnretained(context), forKey: owner)
            guard let former else { return nil }
            // Only a context of this same owner belongs to this isolation, and may be retained.
            let isOwners = former._withUnsafeGuaranteedRef { $0.owner === context.owner && $0.tree != nil }
            return isOwners ? former.takeUnretainedValue() : nil
        }
    }

    /// Removes the entry, unless another owner has the same address by now.
    static func remove(_ context: TransactionContext, of owner: ObjectIdentifier) {
        let table = table(of: owner)
        table.locked { contexts in
            if contexts[owner]?.toOpaque() == Unmanaged.passUnretained(context).toOpaque() {
                contexts[owner] = nil
            }
        }
    }

    /// The owner is alive, and so is its context: only the owner's isolation releases the context. A context whose
    /// owner's address was reused belongs to another tree; it is only compared.
    static func context(of owner: AnyObject) -> TransactionContext? {
        let table = table(of: ObjectIdentifier(owner))
        return table.locked { contexts in
            guard let found = contexts[ObjectIdentifier(owner)] else { return nil }
            // Retained only after this check: the last reference must not be released under the lock.
            guard found._withUnsafeGuaranteedRef({ $0.owner === owner }) else { return nil }
            return found.takeUnretainedValue()
        }
    }
}
