internal import CScheduler

/// A closure as two machine words, which an operation carries without a separate box.
///
/// The struct keeps the closure's natural calling convention: stored through a generic pointer it would be
/// re-abstracted, which allocates a second box.
struct Body: ~Copyable, Sendable {
    typealias Words = (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?)

    let run: @Sendable () -> Void

    @inline(__always)
    init(_ run: consuming @escaping @Sendable () -> Void) { self.run = run }

    /// Takes over the reference that ``words()`` gave away.
    @inline(__always)
    init(taking words: Words) {
        var words = unsafe words
        self = unsafe withUnsafeMutablePointer(to: &words) { pointer in
            unsafe UnsafeMutableRawPointer(pointer).assumingMemoryBound(to: Body.self).move()
        }
    }

    /// The closure's code and context, with a reference to the context that ``init(taking:)`` takes over.
    @inline(__always)
    consuming func words() -> Words {
        var words: Words = (nil, nil)
        var body: Body? = self
        unsafe withUnsafeMutablePointer(to: &words) { words in
            // Never deinitialised: the reference moves into the words.
            _ = unsafe UnsafeMutableRawPointer(words).initializeMemory(as: Body.self, to: body.take()!)
        }
        return unsafe words
    }

    /// An operation that runs the closure or, if cancelled, only releases it.
    @inline(__always)
    consuming func operation(in counter: OpaquePointer?) -> csched_operation {
        let (code, context) = unsafe words()
        return unsafe csched_operation(run: runBody, context: code, extra: context, counter: counter)
    }
}

/// The C function of every closure. Takes over the closure before it checks the disposition, so the
/// closure is released in either case.
private func runBody(
    _ code: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?, _ disposition: csched_disposition
) {
    let body = unsafe Body(taking: (code, context))
    if disposition == .run { body.run() }
}
