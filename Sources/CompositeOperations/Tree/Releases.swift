// Releases.swift - chains of objects that hold each other go without recursion, however long they are.

internal import Runs

/// References of objects that go.
///
/// To take the next one out of an object that nobody else seems to hold would be no way: a weak reference may be about to make
/// it somebody's again.
enum Releases {
    /// Of one thread, while it releases.
    private final class Waiting {
        var held: [Any]
        init(_ held: consuming [Any]) { self.held = held }
    }

    private static let value = ThreadValue()

    /// Releases operations and blocks, on this thread: now, or, when this is called by an operation that goes because of
    /// another such call, as soon as that has gone.
    static func release(_ held: consuming [Any]) {
        if let outer = value.here {
            Unmanaged<Waiting>.fromOpaque(outer).takeUnretainedValue().held += held
            return
        }
        let waiting = Waiting(consume held)
        value.set(Unmanaged.passUnretained(waiting).toOpaque())
        while waiting.held.popLast() != nil {}
        value.set(nil)
    }
}
