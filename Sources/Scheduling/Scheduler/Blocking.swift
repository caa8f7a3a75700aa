internal import CScheduler

extension Scheduler {
    /// Calls a body that may block its thread: on a semaphore, a lock that is held for long, a file, a socket.
    ///
    /// ```swift
    /// try scheduler.submit { let reply = Scheduler.blocking { connection.receive() } … }
    /// ```
    ///
    /// While it blocks, another worker takes the place of this one, within some 100 us if operations wait. Bodies that
    /// block without saying so are replaced as well, within some milliseconds, when the state of their thread shows it.
    /// On a thread that is no worker the call is only one of `body`.
    ///
    /// - Returns: what `body` returns.
    /// - Throws: what `body` throws.
    /// - Complexity: two compare-exchanges, some 10 ns, where nothing blocks.
    /// - SeeAlso: ``Configuration/spareWorkers``, the limit of threads.
    @inlinable
    public static func blocking<Value: ~Copyable, Failure: Error>(
        _ body: () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        beginBlocking()
        defer { endBlocking() }
        return try body()
    }

    @usableFromInline static func beginBlocking() { csched_block_begin() }
    @usableFromInline static func endBlocking() { csched_block_end() }
}

typealias NestedBody = @convention(c) (UnsafeMutableRawPointer?) -> Void

/// Calls what runs nested in a wait: as a task of its own, which begins and ends here, so that it sees neither the
/// task-local values nor the cancellation of the code that waits.
func callIsolated(_ body: @escaping NestedBody, _ context: UnsafeMutableRawPointer?) {
    let call = unsafe NestedCall(body: body, context: context)
    Task.immediateDetached { unsafe call.body(call.context) }
}

// Sendable: it is called before callIsolated returns, on the same thread.
@safe
private struct NestedCall: @unchecked Sendable {
    let body: NestedBody
    let context: UnsafeMutableRawPointer?
}
