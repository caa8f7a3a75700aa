import CompositeOperationsBasics
package import Glibc

private final class ThreadBody: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
}

/// Starts a kernel thread, which the caller joins or detaches.
///
/// - Parameters:
///   - who: the function that needs the thread, for the error message.
///   - stackSize: in bytes; nil: the default.
package func startThread(
    for who: StaticString, stackSize: Int? = nil, _ body: @escaping @Sendable () -> Void
) -> pthread_t {
    // In separately allocated memory: whether the type has an initializer in Swift depends on other imports.
    let attributes = UnsafeMutablePointer<pthread_attr_t>.allocate(capacity: 1)
    pthread_attr_init(attributes)
    defer {
        pthread_attr_destroy(attributes)
        attributes.deallocate()
    }
    if let stackSize {
        demand(
            pthread_attr_setstacksize(attributes, stackSize) == 0, "\(who): no stack has \(stackSize) bytes")
    }
    var thread = pthread_t()
    let context = Unmanaged.passRetained(ThreadBody(body))
    let error = pthread_create(
        &thread, attributes,
        { context in
            Unmanaged<ThreadBody>.fromOpaque(context!).takeRetainedValue().run()
            return nil
        }, context.toOpaque())
    demand(error == 0, "\(who): a thread could not be created")
    return thread
}
