// Reduce.swift - one value from many: reduces each chunk to a partial result, then combines these in the order
// of the chunks.

extension Scheduler {
    /// Combines all elements of a collection, on the workers.
    ///
    /// ```swift
    /// let total = try scheduler.reduce(prices, 0, +)
    /// ```
    ///
    /// Every worker combines runs of adjacent elements, starting each run from `identity`; the partial results
    /// are then combined in the elements' order. So `combine` must be *associative*, but need not be
    /// commutative. If it is not associative (floating-point addition), the result depends on the chunks, and
    /// hence on the number of workers. When a call throws, calls that have not begun are skipped.
    ///
    /// - Parameters:
    ///   - identity: a neutral element, such as 0 for `+`; used once for every chunk and once at the end.
    ///   - combine: called concurrently on many workers.
    /// - Throws: as `forEach(_:_:)`.
    /// - Returns: `identity` for an empty collection.
    /// - Complexity: O(n) calls, of which about 32 per worker are made on the calling thread; a fixed number
    ///   of allocations, no lock.
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

    /// Combines all elements of a collection, on the workers, without blocking a thread.
    ///
    /// ```swift
    /// let total = try await scheduler.reduce(prices, 0, +)
    /// ```
    ///
    /// As in the blocking form, `combine` must be associative, but need not be commutative. When the task is
    /// cancelled, calls that have not begun are skipped.
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
    /// Every worker folds runs of adjacent elements into partial results, each starting from `identity`;
    /// `combine` then merges these results, in the elements' order. `combine` must be *associative*, need not
    /// be commutative, and must agree with `update`: updating with some elements and combining with the result
    /// of the others must equal updating with all.
    ///
    /// - Parameters:
    ///   - identity: a neutral value, such as an empty dictionary; used once for every chunk and once at the
    ///     end.
    ///   - update: adds an element to a partial result; called concurrently on many workers.
    ///   - combine: adds a later partial result to an earlier one; called on the calling thread.
    /// - Throws: as `forEach(_:_:)`.
    /// - Returns: `identity` for an empty collection.
    /// - Complexity: O(n) calls of `update`, and one of `combine` per chunk, with some 32 chunks per worker; a
    ///   fixed number of allocations, no lock.
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

    /// Combines all elements of a collection into a value of another type, on the workers, without blocking a
    /// thread.
    ///
    /// ```swift
    /// let counts = try await scheduler.reduce(words, into: [:]) { $0[$1, default: 0] += 1 } combine: {
    ///     $0.merge($1, uniquingKeysWith: +)
    /// }
    /// ```
    ///
    /// As in the blocking form, `combine` must be associative, but need not be commutative. When the task is
    /// cancelled, calls that have not begun are skipped.
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

/// One value for each chunk of a loop; nil if the chunk was cut short.
@safe @usableFromInline
final class PartialResults<Value: Sendable>: Sendable {
    // Sendable: each chunk writes its own value; all are read only after the loop.
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

    /// The loop body for each chunk. The chunk's value is written once, at the end, because adjacent values
    /// share a cache line.
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

    /// All values combined, in the order of the chunks; called after a loop that succeeded.
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
