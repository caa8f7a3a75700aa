// Map.swift - an array of a closure's results, one per element, in the order of the elements.

extension Scheduler {
    /// Transforms every element of a collection, on the workers, and returns the results in the elements'
    /// order.
    ///
    /// ```swift
    /// let thumbnails = try scheduler.map(images) { image in try image.scaled(to: 64) }
    /// ```
    ///
    /// The results are written directly into the memory of the returned array. When a call throws, calls that
    /// have not begun are skipped, calls that have begun are waited for, and the results are destroyed. On a
    /// worker of a scheduler, `map` runs parts of the loop itself, but no other operations.
    ///
    /// - Parameter transform: called once for every element, in no particular order.
    /// - Throws: as `forEach(_:_:)`.
    /// - Complexity: O(n) calls; a fixed number of allocations besides the array, none per element.
    @available(
        *, noasync,
        message: "Blocks the thread; use the asynchronous map(_:_:) (in top-level code: in a function)."
    )
    @inlinable
    public func map<Elements: RandomAccessCollection & Sendable, Value: Sendable>(
        _ elements: Elements, _ transform: @escaping @Sendable (Elements.Element) throws -> Value
    ) throws -> [Value] {
        let chunks = Chunks(of: elements.count, for: self)
        // All arrays without capacity share one object. Building an empty result as below would write to it.
        guard chunks.elements > 0 else {
            try runLoop(chunks, MapResults<Value>(for: chunks).fill(from: elements, transform))
            return []
        }
        return try unsafe [Value](unsafeUninitializedCapacity: chunks.elements) { memory, initialized in
            let results = unsafe MapResults(in: memory.baseAddress, for: chunks)
            try runLoop(chunks, results.fill(from: elements, transform))
            results.giveAway()
            initialized = chunks.elements
        }
    }

    /// Transforms every element of a collection, on the workers, and returns the results in the elements'
    /// order, without blocking a thread.
    ///
    /// ```swift
    /// let thumbnails = try await scheduler.map(images) { image in try image.scaled(to: 64) }
    /// ```
    ///
    /// Like the blocking form; when the task is cancelled, calls that have not begun are skipped.
    ///
    /// - Parameter transform: called once for every element, in no particular order.
    /// - Throws: as `forEach(_:_:)`.
    /// - Complexity: O(n) calls; a fixed number of allocations besides the array, none per element. The
    ///   results are moved once, as bytes: an array cannot lend its memory to code that suspends.
    @inlinable
    public nonisolated(nonsending) func map<Elements: RandomAccessCollection & Sendable, Value: Sendable>(
        _ elements: Elements, _ transform: @escaping @Sendable (Elements.Element) throws -> Value
    ) async throws -> [Value] {
        let chunks = Chunks(of: elements.count, for: self)
        let results = MapResults<Value>(for: chunks)
        try await awaitLoop(chunks, results.fill(from: elements, transform))
        return results.moved()
    }
}

/// Uninitialised memory for the results of a map, filled by its chunks.
///
/// A chunk that fails destroys its own results; those of the other chunks are destroyed at the end, unless
/// their ownership was given away.
@safe @usableFromInline
final class MapResults<Value: Sendable>: Sendable {
    // Sendable: each chunk has its own part of the memory and its own flag; all are read together only after
    // the loop.
    @usableFromInline nonisolated(unsafe) let memory: UnsafeMutablePointer<Value>?
    @usableFromInline nonisolated(unsafe) let isFilled: UnsafeMutablePointer<Bool>
    @usableFromInline let chunks: Chunks
    @usableFromInline let ownsMemory: Bool
    @usableFromInline nonisolated(unsafe) var isGivenAway = false

    /// Allocates its own memory.
    @inlinable
    convenience init(for chunks: Chunks) {
        unsafe self.init(in: .allocate(capacity: chunks.elements), for: chunks, ownsMemory: true)
    }

    @inlinable
    init(in memory: UnsafeMutablePointer<Value>?, for chunks: Chunks, ownsMemory: Bool = false) {
        unsafe self.memory = memory
        self.chunks = chunks
        self.ownsMemory = ownsMemory
        unsafe isFilled = .allocate(capacity: chunks.count)
        unsafe isFilled.initialize(repeating: false, count: chunks.count)
    }

    @inlinable
    deinit {
        destroy()
        unsafe isFilled.deallocate()
        if ownsMemory { unsafe memory?.deallocate() }
    }

    /// The loop body for each chunk.
    @inlinable
    func fill<Elements: RandomAccessCollection & Sendable>(
        from elements: Elements, _ transform: @escaping @Sendable (Elements.Element) throws -> Value
    ) -> Loop.Body {
        { chunk, offsets, loop in
            guard let memory = unsafe self.memory else { return }  // no elements
            var index = elements.index(elements.startIndex, offsetBy: offsets.lowerBound)
            var offset = offsets.lowerBound
            do {
                while offset < offsets.upperBound {
                    try loop.goOn()
                    unsafe (memory + offset).initialize(to: try transform(elements[index]))
                    elements.formIndex(after: &index)
                    offset += 1
                }
            } catch {
                unsafe (memory + offsets.lowerBound).deinitialize(count: offset - offsets.lowerBound)
                throw error
            }
            unsafe self.isFilled[chunk] = true
        }
    }

    /// From now on the results belong to the owner of the memory.
    @inlinable
    func giveAway() { unsafe isGivenAway = true }

    /// The results in an array; called only once every chunk is filled.
    @inlinable
    func moved() -> [Value] {
        guard let memory = unsafe memory, chunks.elements > 0 else { return [] }  // see `map`
        giveAway()
        return unsafe [Value](unsafeUninitializedCapacity: chunks.elements) { array, initialized in
            initialized = chunks.elements
            unsafe array.baseAddress?.moveInitialize(from: memory, count: chunks.elements)
        }
    }

    /// Destroys the results in filled chunks, unless they were given away.
    @inlinable
    func destroy() {
        guard unsafe !isGivenAway, let memory = unsafe memory else { return }
        for chunk in 0..<chunks.count where unsafe isFilled[chunk] {
            let offsets = chunks.range(of: chunk)
            unsafe (memory + offsets.lowerBound).deinitialize(count: offsets.count)
            unsafe isFilled[chunk] = false
        }
    }
}
