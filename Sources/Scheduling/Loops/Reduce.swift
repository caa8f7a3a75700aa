// Reduce.swift - one value of many: each chunk into a partial one, then the partial ones in the order of the
// chunks.

extension Scheduler {
    /// Combines all elements of a collection, on the workers.
    ///
    /// ```swift
    /// let total = try scheduler.reduce(prices, 0, +)
    /// ```
    ///
    /// Every worker combines runs of neighbours, each beginning with `identity`; the partial results are then
    /// combined in the elements' order. So `combine` must be *associative*, and need not be commutative. If
    /// it isn't (floating point numbers), the result depends on how the elements were cut, which depends on
    /// the number of workers. When a call throws, those that have not begun are left out.
    ///
    /// - Parameters:
    ///   - identity: a neutral element, such as 0 for `+`: it is used once for every chunk and once for the
    ///     end.
    ///   - combine: called on many workers at the same time.
    /// - Throws: as `forEach(_:_:)`.
    /// - Returns: `identity` for an empty collection.
    /// - Complexity: O(n) calls, of which some 32 for each worker happen in the caller; a fixed number of
    ///   allocations, no lock.
    /// - SeeAlso: `reduce` of rayon, `parallel_reduce` of TBB.
    @available(
        *, noasync,
        message: "Blocks the thread; use the asynchronous reduce(_:_:_:) (in top-level code: in a function)."
    )
    @inlinable
    public func reduce<Elements: RandomAccessCollection & Sendable>(
        _ elements: Elements, _ identity: Elements.Element,
        _ combine: @escaping @Sendable (Elements.Element, Elements.Element) throws -> Elements.Element
    ) throws -> Elements.Element where Elements.Element: Sendable {
        try reduce(elements, into: identity) {
            $0 = try combine($0, $1)
        } combine: {
            $0 = try combine($0, $1)
        }
    }

    /// Combines all elements of a collection, on the workers, blocking no thread.
    ///
    /// ```swift
    /// let total = try await scheduler.reduce(prices, 0, +)
    /// ```
    ///
    /// As the blocking form: `combine` must be associative, and need not be commutative. When the task is
    /// cancelled, calls that have not begun are left out.
    ///
    /// - Throws: as `forEach(_:_:)`.
    /// - Returns: `identity` for an empty collection.
    @inlinable
    public nonisolated(nonsending) func reduce<Elements: RandomAccessCollection & Sendable>(
        _ elements: Elements, _ identity: Elements.Element,
        _ combine: @escaping @Sendable (Elements.Element, Elements.Element) throws -> Elements.Element
    ) async throws -> Elements.Element where Elements.Element: Sendable {
        try await reduce(elements, into: identity) {
            $0 = try combine($0, $1)
        } combine: {
            $0 = try combine($0, $1)
        }
    }

    /// Combines all elements of a collection into a value of another type, on the workers.
    ///
    /// ```swift
    /// let counts = try scheduler.reduce(words, into: [:]) { $0[$1, default: 0] += 1 } combine: {
    ///     $0.merge($1, uniquingKeysWith: +)
    /// }
    /// ```
    ///
    /// Every worker updates partial results with runs of neighbours, each beginning with `identity`;
    /// `combine` then puts these together, in the elements' order. It must be *associative*, need not be
    /// commutative, and must agree with `update`: to update with some elements and combine with the result of
    /// the others is the same as to update with all.
    ///
    /// - Parameters:
    ///   - identity: a neutral value, such as an empty dictionary: it is used once for every chunk and for
    ///     the end.
    ///   - update: adds an element to a partial result; called on many workers at the same time.
    ///   - combine: adds a later partial result to an earlier one; called in the calling thread.
    /// - Throws: as `forEach(_:_:)`.
    /// - Returns: `identity` for an empty collection.
    /// - Complexity: O(n) calls of `update`, one of `combine` for each chunk, which are some 32 for each
    ///   worker; a fixed number of allocations, no lock.
    /// - SeeAlso: `fold` and `reduce` of rayon.
    @available(
        *, noasync,
        message:
            "Blocks the thread; use the asynchronous reduce(_:into:_:combine:) (top level: in a function)."
    )
    @inlinable
    public func reduce<Elements: RandomAccessCollection & Sendable, Value: Sendable>(
        _ elements: Elements, into identity: Value,
        _ update: @escaping @Sendable (inout Value, Elements.Element) throws -> Void,
        combine: @Sendable (inout Value, Value) throws -> Void
    ) throws -> Value {
        let chunks = Chunks(of: elements.count, for: self)
        let partials = PartialResults<Value>(count: chunks.count)
        try runLoop(chunks, partials.fill(from: elements, beginningWith: identity, update))
        return try partials.combined(beginningWith: identity, combine)
    }

    /// Combines all elements of a collection into a value of another type, on the workers, blocking no
    /// thread.
    ///
    /// ```swift
    /// let counts = try await scheduler.reduce(words, into: [:]) { $0[$1, default: 0] += 1 } combine: {
    ///     $0.merge($1, uniquingKeysWith: +)
    /// }
    /// ```
    ///
    /// As the blocking form: `combine` must be associative, and need not be commutative. When the task is
    /// cancelled, calls that have not begun are left out.
    ///
    /// - Throws: as `forEach(_:_:)`.
    /// - Returns: `identity` for an empty collection.
    @inlinable
    public nonisolated(nonsending) func reduce<Elements: RandomAccessCollection & Sendable, Value: Sendable>(
        _ elements: Elements, into identity: Value,
        _ update: @escaping @Sendable (inout Value, Elements.Element) throws -> Void,
        combine: @Sendable (inout Value, Value) throws -> Void
    ) async throws -> Value {
        let chunks = Chunks(of: elements.count, for: self)
        let partials = PartialResults<Value>(count: chunks.count)
        try await awaitLoop(chunks, partials.fill(from: elements, beginningWith: identity, update))
        return try partials.combined(beginningWith: identity, combine)
    }
}

/// One value for each chunk of a loop, or none where the chunk did not end.
@safe @usableFromInline
final class PartialResults<Value: Sendable>: Sendable {
    // Sendable: each chunk writes its own; who reads all of them does so after the loop.
    @usableFromInline nonisolated(unsafe) let values: UnsafeMutablePointer<Value?>
    @usableFromInline let count: Int

    @inlinable
    init(count: Int) {
        self.count = count
        unsafe values = .allocate(capacity: count)
        unsafe values.initialize(repeating: nil, count: count)
    }

    @inlinable
    deinit {
        unsafe values.deinitialize(count: count)
        unsafe values.deallocate()
    }

    /// The work of a loop on each chunk. The value is written once, at the end: neighbours share a cache
    /// line.
    @inlinable
    func fill<Elements: RandomAccessCollection & Sendable>(
        from elements: Elements, beginningWith identity: Value,
        _ update: @escaping @Sendable (inout Value, Elements.Element) throws -> Void
    ) -> Loop.Body {
        { chunk, offsets, loop in
            var value = identity
            var index = elements.index(elements.startIndex, offsetBy: offsets.lowerBound)
            for _ in offsets {
                try loop.goOn()
                try update(&value, elements[index])
                elements.formIndex(after: &index)
            }
            unsafe self.values[chunk] = value
        }
    }

    /// All of them together, in the order of the chunks; after a loop that has ended well.
    @inlinable
    func combined(beginningWith identity: Value, _ combine: (inout Value, Value) throws -> Void) rethrows
        -> Value
    {
        var result = identity
        for chunk in 0..<count {
            if let value = unsafe values[chunk] { try combine(&result, value) }
        }
        return result
    }
}
