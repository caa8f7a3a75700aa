// AnyClosure.swift - a type-erased closure, for objects of which there are many.
//
// An enum of closures takes a byte more than a closure, and so a word more; byte storage (ValueStorage.swift) would
// need the closures' types at run time. So a closure is stored here as one of another type. As such it is retained and
// released, but never called: all escaping closures are an address and a context, asynchronous ones too.

/// A closure, or none. Its owner knows the type.
struct AnyClosure {
    private var closure: (@Sendable () -> Void)?

    /// None.
    init() {}

    /// - Parameter typed: a struct of one escaping closure; a bare closure would be wrapped in another one when passed
    ///   as a generic argument.
    @inline(__always)
    init<Typed>(_ typed: Typed) { self = unsafeBitCast(typed, to: AnyClosure.self) }

    /// The closure, with its original type.
    @inline(__always)
    func typed<Typed>(_ type: Typed.Type) -> Typed { unsafeBitCast(self, to: type) }
}
