// ThreadValue.swift - a thread-local word.

package import Glibc

/// A thread-local word. Use it only for static constants: the key is never freed.
package struct ThreadValue: Sendable {
    @usableFromInline let key: pthread_key_t

    /// - Parameter end: called at the end of a thread with its word, unless the word is nil.
    package init(end: (@convention(c) (UnsafeMutableRawPointer?) -> Void)? = nil) {
        var key = pthread_key_t()
        guard pthread_key_create(&key, end) == 0 else { fatalError("out of pthread keys for thread values") }
        self.key = key
    }

    /// The word of the calling thread.
    @inlinable package var here: UnsafeMutableRawPointer? { pthread_getspecific(key) }

    @inlinable package func set(_ word: UnsafeRawPointer?) { pthread_setspecific(key, word) }

    /// The ID of the calling thread, unique among living threads.
    @inlinable package static var thread: UInt { UInt(pthread_self()) }
}
