// ValueStorage.swift - room for one value whose type the class around it knows, and the layout of that class does not.
//
// A stored property of a generic type would make the places of all later ones a matter of run time, and its optional
// form a look-up of metadata for each access: some hundred instructions for each operation. So the value lies in two
// words here, or, a larger one, in a box.

/// At most one value, always of the same type. Not copied; `destroy` is the duty of the object that it is a part of.
@usableFromInline
struct ValueStorage: ~Copyable {
    @usableFromInline var words: (UInt, UInt) = (0, 0)
    @usableFromInline var isThere = false

    @usableFromInline init() {}

    /// A value that is larger than the storage.
    @usableFromInline
    final class Box<Value> {
        @usableFromInline let value: Value
        @usableFromInline init(_ value: Value) { self.value = value }
    }

    @inlinable
    @inline(__always)
    static func isInline<Value>(_ type: Value.Type) -> Bool {
        MemoryLayout<Value>.size <= MemoryLayout<(UInt, UInt)>.size
            && MemoryLayout<Value>.alignment <= MemoryLayout<UInt>.alignment
    }

    /// Stores a value, in place of another one.
    @inlinable
    @inline(__always)
    mutating func store<Value>(_ value: Value) {
        destroy(Value.self)
        if Self.isInline(Value.self) {
            withUnsafeMutableBytes(of: &words) { bytes in
                bytes.baseAddress!.bindMemory(to: Value.self, capacity: 1).initialize(to: value)
            }
        } else {
            words.0 = UInt(bitPattern: Unmanaged.passRetained(Box(value)).toOpaque())
        }
        isThere = true
    }

    /// The value.
    ///
    /// - Precondition: it is there.
    @inlinable
    @inline(__always)
    func load<Value>(_ type: Value.Type) -> Value {
        if Self.isInline(type) {
            return withUnsafeBytes(of: words) { bytes in
                bytes.baseAddress!.assumingMemoryBound(to: Value.self).pointee
            }
        }
        return box(of: type)._withUnsafeGuaranteedRef { $0.value }
    }

    /// Takes the value away.
    @inlinable
    @inline(__always)
    mutating func destroy<Value>(_ type: Value.Type) {
        if !isThere { return }
        isThere = false
        if Self.isInline(type) {
            withUnsafeMutableBytes(of: &words) { bytes in
                _ = bytes.baseAddress!.assumingMemoryBound(to: Value.self).deinitialize(count: 1)
            }
        } else {
            box(of: type).release()
        }
    }

    @inlinable
    func box<Value>(of type: Value.Type) -> Unmanaged<Box<Value>> {
        Unmanaged.fromOpaque(UnsafeRawPointer(bitPattern: words.0)!)
    }
}
