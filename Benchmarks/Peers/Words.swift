/// A closure as its two words, so that a C function can carry it without a box around it.
///
/// The struct keeps the closure's natural calling convention: through a generic pointer it would be
/// re-abstracted, which allocates.
struct Words {
    private let run: @Sendable () -> Void

    /// Calls `use` with a C function and the words to call it with, once, from any thread.
    @inline(__always)
    static func of(
        _ run: @escaping @Sendable () -> Void,
        _ use: (
            @convention(c) (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?) -> Void,
            UnsafeMutableRawPointer?,
            UnsafeMutableRawPointer?
        ) -> Void
    ) {
        withUnsafeTemporaryAllocation(of: Words.self, capacity: 1) { buffer in
            // Not deinitialised: the reference moves into the words.
            buffer.initializeElement(at: 0, to: Words(run: run))
            let words = UnsafeRawPointer(buffer.baseAddress.unsafelyUnwrapped)
                .load(as: (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?).self)
            use(call, words.0, words.1)
        }
    }

    private static let call: @convention(c) (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?) -> Void = {
        var words = ($0, $1)
        let closure = withUnsafeMutablePointer(to: &words) {
            UnsafeMutableRawPointer($0).assumingMemoryBound(to: Words.self).move()
        }
        closure.run()
    }
}
