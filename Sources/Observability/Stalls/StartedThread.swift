internal import Glibc

/// A system thread, not a worker, so it keeps running when all workers are stuck.
struct StartedThread: @unchecked Sendable {
    // Unchecked: pthread's handle is a number, or a pointer, that any thread may use.

    private final class Body: Sendable {
        let name: String
        let run: @Sendable () -> Void
        init(_ name: String, _ run: @escaping @Sendable () -> Void) { (self.name, self.run) = (name, run) }
    }

    private let handle: pthread_t

    /// - Precondition: a thread can be created.
    init(_ name: String, _ run: @escaping @Sendable () -> Void) {
        var handle = pthread_t()
        let error = pthread_create(
            &handle, nil,
            { context in
                var signals = sigset_t()
                sigfillset(&signals)
                pthread_sigmask(SIG_SETMASK, &signals, nil)  // signals are for the program's own threads
                Unmanaged<Body>.fromOpaque(context!).takeRetainedValue().run()
                return nil
            }, Unmanaged.passRetained(Body(name, run)).toOpaque())
        precondition(
            error == 0, "A thread for '\(name)' could not be created: \(String(cString: strerror(error)))")
        self.handle = handle
    }

    /// Detaches the thread. Called once, in place of ``end()``.
    func leave() { pthread_detach(handle) }

    /// Waits for the thread's end; on the thread itself, detaches it. Called once.
    func end() {
        if pthread_equal(handle, pthread_self()) != 0 {
            pthread_detach(handle)
        } else {
            pthread_join(handle, nil)
        }
    }
}
