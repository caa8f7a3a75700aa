import Synchronization

/// A cache of values that are computed once for each key and are expensive: a graph, the checksum of a
/// picture.
final class Remembered<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private let values = Mutex<[Key: Value]>([:])

    /// The value of a key; `compute` is called on the first request.
    func value(_ key: Key, _ compute: () -> Value) -> Value {
        if let value = values.withLock({ $0[key] }) { return value }
        let value = compute()
        values.withLock { $0[key] = value }
        return value
    }
}
