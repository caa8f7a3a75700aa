import CompositeOperationsBasics
package import Glibc

private final class ThreadBody: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
}

/// Starts a kernel thread, which the caller joins.
///
/// - Parameter who: the function that needs it, for the sentence that says that there can be no thread.
package func startThread(for who: StaticString, _ body: @escaping @Sendable () -> Void) -> pthread_t {
    var thread = pthread_t()
    let context = Unmanaged.passRetained(ThreadBody(body))
    let error = pthread_create(
        &thread, nil,
        { context in
            Unmanaged<ThreadBody>.fromOpaque(context!).takeRetainedValue().run()
            return nil
        }, context.toOpaque())
    demand(error == 0, "\(who): a thread could not be created")
    return thread
}
