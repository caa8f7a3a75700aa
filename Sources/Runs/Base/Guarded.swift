// Guarded.swift - a value shared by threads, under its lock.

/// A value under a ``WordLock``. No user code runs under the lock.
///
/// Inlinable, because other modules would otherwise look up the types' metadata at each call, which takes longer than the
/// critical section; hence public, as ``WordLock`` is.
@_spi(Faces) public final class Guarded<Value>: @unchecked Sendable {
    // Unchecked, and so is its exclusivity: `value` is accessed only under `lock`, which is not recursive.
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

    /// Takes the value out, leaving nil.
    @inlinable public func take<Wrapped>() -> Wrapped? where Value == Wrapped? {
        withLock { value in
            defer { value = nil }
            return value
        }
    }
}
