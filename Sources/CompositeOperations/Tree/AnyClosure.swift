// AnyClosure.swift - a closure without its type, in an object of which there are many.
//
// An enumeration of closures has a byte more than they have, and so takes a word more; a storage of bytes
// (ValueStorage.swift) would need their types at run time. So a closure lies here as one of another type, as which it is
// retained and released, but never called: all escaping closures are an address and a context, asynchronous ones too.

/// A closure, or none; of which type, its owner knows.
struct AnyClosure {
    private var closure: (@Sendable () -> Void)?

    /// None.
    init() {}

    /// - Parameter typed: a struct of one escaping closure; a bare one would be wrapped in another where it becomes a
    ///   generic argument.
    @inline(__always)
    init<Typed>(_ typed: Typed) { self = unsafeBitCast(typed, to: AnyClosure.self) }

    /// The closure, with the type that it had.
    @inline(__always)
    func typed<Typed>(_ type: Typed.Type) -> Typed { unsafeBitCast(self, to: type) }
}
