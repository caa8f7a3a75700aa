// ValueStorage.swift - storage for the result of a run, in a class whose layout does not depend on the type of the
// value.
//
// With a stored property of generic type, the offsets of all later properties would be known only at run time, and
// an optional one would need a metadata look-up for each access: about a hundred instructions for each operation.
// So the value is stored in two words, or, if it is larger, in a box.

/// A value, an object, or nothing. The owner knows which of these, and the type.
///
/// Inlinable for the reason given at ``Guarded``.
@usableFromInline package struct ValueStorage: ~Copyable {
    @usableFromInline package var words: (UInt, UInt) = (0, 0)

    /// Creates empty storage.
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

    /// Stores a value in empty storage.
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

    /// Lets a closure store a value in empty storage.
    ///
    /// - Parameter give: initializes the value; returns false if there is none.
    /// - Returns: the result of `give`.
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

    /// The stored value. Mutating only so that the value is read in place: nothing changes.
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

    /// Destroys the stored value.
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

    /// Stores an object in empty storage, and retains it.
    @inlinable package mutating func storeObject(_ object: AnyObject) {
        words.0 = UInt(bitPattern: Unmanaged.passRetained(object).toOpaque())
    }

    /// The stored object.
    @inlinable
    package func object<Object: AnyObject>(of type: Object.Type) -> Unmanaged<Object> {
        .fromOpaque(UnsafeRawPointer(bitPattern: words.0)!)
    }
}
