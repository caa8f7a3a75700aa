// Releases.swift - chains of objects that hold each other go without recursion, however long they are.

internal import Glibc

/// What objects held that go.
///
/// To take the next one out of an object that nobody else seems to hold would be no way: a weak reference may be about to make
/// it somebody's again.
enum Releases {
    /// Of one thread, while it releases.
    private final class Waiting {
        var held: [Any]
        init(_ held: consuming [Any]) { self.held = held }
    }

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        guard pthread_key_create(&key, nil) == 0 else { fatalError("no key is left for values of a thread") }
        return key
    }()

    /// Releases operations and blocks, on this thread: now, or, when this is called by an operation that goes because of
    /// another such call, as soon as that has gone.
    static func release(_ held: consuming [Any]) {
        if let outer = pthread_getspecific(key) {
            Unmanaged<Waiting>.fromOpaque(outer).takeUnretainedValue().held += held
            return
        }
        let waiting = Waiting(consume held)
        pthread_setspecific(key, Unmanaged.passUnretained(waiting).toOpaque())
        while waiting.held.popLast() != nil {}
        pthread_setspecific(key, nil)
    }
}
