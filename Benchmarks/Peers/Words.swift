/// A closure as two machine words, which a C function can carry without boxing the closure.
///
/// The struct keeps the closure's natural calling convention: loaded through a generic pointer, the closure
/// would be re-abstracted, which allocates.
struct Words {
    private let run: @Sendable () -> Void

    /// Calls `use` with a C function and the two words to pass to it. That function must be called once, from any thread.
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
