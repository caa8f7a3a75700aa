// ForEachChunk.swift - forEach over chunks of a size that the caller chooses.

internal import CompositeOperationsBasics

extension Scheduler {
    /// Calls `body` once for every chunk of a collection, on the workers, and returns after the last.
    ///
    /// ```swift
    /// try scheduler.forEach(samples, chunksOf: 4_096) { chunk in filter(chunk) }
    /// ```
    ///
    /// For bodies with setup work that many elements then share: a buffer, a connection, a bulk insertion.
    /// When a call throws, calls that have not begun are skipped, and calls that have begun are waited for. On
    /// a worker of a scheduler, `forEach` runs parts of the loop itself, but no other operations.
    ///
    /// - Parameter size: how many adjacent elements make a chunk, at least 1; the last chunk may be shorter.
    /// - Throws: as the form without chunks, `forEach(_:_:)`.
    /// - Complexity: O(n / size) calls; a fixed number of allocations, none per chunk.
    @available(
        *, noasync,
        message:
            "Blocks the thread; use the asynchronous forEach(_:chunksOf:_:) (in top-level code: in a function)."
    )
    @inlinable
    public func forEach<Elements: RandomAccessCollection & Sendable>(
        _ elements: Elements, chunksOf size: Int,
        _ body: @escaping @Sendable (Elements.SubSequence) throws -> Void
    ) throws {
        try runLoop(Self.chunks(of: elements.count, size: size), Self.forEachChunk(of: elements, body))
    }

    /// Calls `body` once for every chunk of a collection, on the workers, and returns after the last, without
    /// blocking a thread.
    ///
    /// ```swift
    /// try await scheduler.forEach(samples, chunksOf: 4_096) { chunk in filter(chunk) }
    /// ```
    ///
    /// Like the blocking form; when the task is cancelled, chunks that have not begun are skipped.
    ///
    /// - Parameter size: how many adjacent elements make a chunk, at least 1; the last chunk may be shorter.
    /// - Throws: as the form without chunks, `forEach(_:_:)`.
    /// - Complexity: O(n / size) calls; a fixed number of allocations, none per chunk.
    @inlinable
    public nonisolated(nonsending) func forEach<Elements: RandomAccessCollection & Sendable>(
        _ elements: Elements, chunksOf size: Int,
        _ body: @escaping @Sendable (Elements.SubSequence) throws -> Void
    ) async throws {
        try await awaitLoop(
            Self.chunks(of: elements.count, size: size), Self.forEachChunk(of: elements, body))
    }

    @usableFromInline
    static func chunks(of count: Int, size: Int) -> Chunks {
        demand(
            size > 0, "Scheduler.forEach(_:chunksOf:_:): the chunk size is \(size), and must be at least 1")
        return Chunks(of: count, size: size)
    }

    @inlinable
    static func forEachChunk<Elements: RandomAccessCollection & Sendable>(
        of elements: Elements, _ body: @escaping @Sendable (Elements.SubSequence) throws -> Void
    ) -> Loop.Body {
        { _, offsets, _ in
            let first = elements.index(elements.startIndex, offsetBy: offsets.lowerBound)
            try body(elements[first..<elements.index(first, offsetBy: offsets.count)])
        }
    }
}
