// ValueStorage.swift - room for how a run ended, in a class whose layout does not know the type of its value.
//
// A stored property of a generic type would make the places of all later ones a matter of run time, and its optional
// form a look-up of metadata for each access: some hundred instructions for each operation. So the value lies in two
// words here, or, a larger one, in a box.

/// A value, or an object, or nothing: what of these, and of which type, its owner knows.
///
/// Inlinable for what ``Guarded`` says.
@usableFromInline package struct ValueStorage: ~Copyable {
    @usableFromInline package var words: (UInt, UInt) = (0, 0)

    /// Nothing.
    @inlinable package init() {}

    /// A value that is larger than the storage.
    @usableFromInline
    package final class Box<Value> {
        @usableFromInline package let value: Value
        @usableFromInline package init(_ value: Value) { self.value = value }
    }

    @inlinable
    @inline(__always)
    package static func isInline<Value>(_ type: Value.Type) -> Bool {
        MemoryLayout<Value>.size <= MemoryLayout<(UInt, UInt)>.size
            && MemoryLayout<Value>.alignment <= MemoryLayout<UInt>.alignment
    }

    /// Stores a value, where there is nothing.
    @inlinable
    @inline(__always)
    package mutating func store<Value>(_ value: Value) {
        if Self.isInline(Value.self) {
            withUnsafeMutableBytes(of: &words) { bytes in
                bytes.baseAddress!.bindMemory(to: Value.self, capacity: 1).initialize(to: value)
            }
        } else {
            storeObject(Box(value))
        }
    }

    /// Has a value stored where there is nothing.
    ///
    /// - Parameter give: initializes it; false: it is not there.
    /// - Returns: as `give`.
    @inlinable
    @inline(__always)
    package mutating func store<Value>(_ give: (UnsafeMutablePointer<Value>) -> Bool) -> Bool {
        if Self.isInline(Value.self) {
            return withUnsafeMutableBytes(of: &words) { bytes in
                give(bytes.baseAddress!.bindMemory(to: Value.self, capacity: 1))
            }
        }
        return withUnsafeTemporaryAllocation(of: Value.self, capacity: 1) { place in
            guard give(place.baseAddress!) else { return false }
            storeObject(Box(place.baseAddress!.move()))
            return true
        }
    }

    /// The value that was stored. Mutating, so that it is read where it lies: it changes nothing.
    @inlinable
    @inline(__always)
    package mutating func load<Value>(_ type: Value.Type) -> Value {
        if Self.isInline(type) {
            return withUnsafeMutableBytes(of: &words) { bytes in
                bytes.baseAddress!.assumingMemoryBound(to: Value.self).pointee
            }
        }
        return object(of: Box<Value>.self)._withUnsafeGuaranteedRef { $0.value }
    }

    /// Takes the value away that was stored.
    @inlinable
    @inline(__always)
    package mutating func destroy<Value>(_ type: Value.Type) {
        if Self.isInline(type) {
            withUnsafeMutableBytes(of: &words) { bytes in
                _ = bytes.baseAddress!.assumingMemoryBound(to: Value.self).deinitialize(count: 1)
            }
        } else {
            object(of: Box<Value>.self).release()
        }
    }

    /// Stores an object, where there is nothing, with a reference.
    @inlinable package mutating func storeObject(_ object: AnyObject) {
        words.0 = UInt(bitPattern: Unmanaged.passRetained(object).toOpaque())
    }

    /// The object that was stored.
    @inlinable
    package func object<Object: AnyObject>(of type: Object.Type) -> Unmanaged<Object> {
        .fromOpaque(UnsafeRawPointer(bitPattern: words.0)!)
    }
}
