// ThreadValue.swift - a word of each thread.

package import Glibc

/// A word that each thread has for itself. A constant: it stays as long as the process.
package struct ThreadValue: Sendable {
    @usableFromInline let key: pthread_key_t

    /// - Parameter end: called at the end of a thread, with its word, unless that is nil.
    package init(end: (@convention(c) (UnsafeMutableRawPointer?) -> Void)? = nil) {
        var key = pthread_key_t()
        guard pthread_key_create(&key, end) == 0 else { fatalError("no key is left for values of a thread") }
        self.key = key
    }

    /// That of the calling thread.
    @inlinable package var here: UnsafeMutableRawPointer? { pthread_getspecific(key) }

    @inlinable package func set(_ word: UnsafeRawPointer?) { pthread_setspecific(key, word) }

    /// The number of the calling thread, which no other one has meanwhile.
    @inlinable package static var thread: UInt { UInt(pthread_self()) }
}
