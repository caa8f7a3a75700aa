// Guarded.swift - a value that many threads use, each under its lock.

/// A value under a ``WordLock``. No code of a user runs under it.
///
/// Inlinable, because other modules look the types up at each call else, which takes longer than the section.
package final class Guarded<Value>: @unchecked Sendable {
    // Unchecked: `value` is used under `lock` alone.
    @usableFromInline let lock = WordLock()
    @usableFromInline var value: Value

    @inlinable package init(_ value: Value) { self.value = value }

    @inlinable package func withLock<Answer>(_ body: (inout Value) throws -> Answer) rethrows -> Answer {
        let key = UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
        lock.lock(key)
        defer { lock.unlock(key) }
        return try body(&value)
    }

    /// Empties it.
    @inlinable package func take<Wrapped>() -> Wrapped? where Value == Wrapped? {
        withLock { value in
            defer { value = nil }
            return value
        }
    }
}
