// Releases.swift - chains of objects that hold each other are released without recursion, however long they are.

internal import Runs

/// The references of objects that are being deallocated.
///
/// We must not steal a field from an object whose count looks like 1: a weak reference may be promoting it at this
/// moment.
enum Releases {
    /// The pending references of one thread, while it releases.
    private final class Waiting {
        var held: [Any]
        init(_ held: consuming [Any]) { self.held = held }
    }

    private static let value = ThreadValue()

    /// Releases operations and blocks, on this thread: now, or, if called by an operation that is being deallocated
    /// because of another such call, after that deallocation.
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
