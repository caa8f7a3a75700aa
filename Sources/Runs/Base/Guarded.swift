// Guarded.swift - a value that many threads use, each under its lock.

/// A value under a ``WordLock``. No code of a user runs under it.
///
/// Inlinable, because other modules look the types up at each call else, which takes longer than the section; so public, as
/// ``WordLock`` is.
@_spi(Faces) public final class Guarded<Value>: @unchecked Sendable {
    // Unchecked, and so is its exclusivity: `value` is used under `lock` alone, which is not recursive.
    @usableFromInline let lock = WordLock()
    @exclusivity(unchecked) @usableFromInline var value: Value

    /// Guards a value.
    @inlinable public init(_ value: Value) { self.value = value }

    /// Calls `body` under the lock.
    @inlinable public func withLock<Answer>(_ body: (inout Value) throws -> Answer) rethrows -> Answer {
        let key = UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
        lock.lock(key)
        defer { lock.unlock(key) }
        return try body(&value)
    }

    /// Empties it.
    @inlinable public func take<Wrapped>() -> Wrapped? where Value == Wrapped? {
        withLock { value in
            defer { value = nil }
            return value
        }
    }
}
