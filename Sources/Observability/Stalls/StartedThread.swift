internal import Glibc

/// A thread of the system: not a worker, so that it goes on when all of these are stuck.
struct StartedThread: @unchecked Sendable {
    // Unchecked: pthread's handle is a number, or a pointer, that any thread may use.

    private final class Body: Sendable {
        let name: String
        let run: @Sendable () -> Void
        init(_ name: String, _ run: @escaping @Sendable () -> Void) { (self.name, self.run) = (name, run) }
    }

    private let handle: pthread_t

    /// - Precondition: there can be one thread more.
    init(_ name: String, _ run: @escaping @Sendable () -> Void) {
        var handle = pthread_t()
        let error = pthread_create(
            &handle, nil,
            { context in
                var signals = sigset_t()
                sigfillset(&signals)
                pthread_sigmask(SIG_SETMASK, &signals, nil)  // they are the program's
                Unmanaged<Body>.fromOpaque(context!).takeRetainedValue().run()
                return nil
            }, Unmanaged.passRetained(Body(name, run)).toOpaque())
        precondition(
            error == 0, "A thread for '\(name)' could not be made: \(String(cString: strerror(error)))")
        self.handle = handle
    }

    /// Leaves it to end alone. Once, in place of ``end()``.
    func leave() { pthread_detach(handle) }

    /// Waits for its end; on the thread itself, leaves it to end alone. Once.
    func end() {
        if pthread_equal(handle, pthread_self()) != 0 {
            pthread_detach(handle)
        } else {
            pthread_join(handle, nil)
        }
    }
}
