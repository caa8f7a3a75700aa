internal import CScheduler

extension Scheduler {
    /// Calls a body that may block its thread: on a semaphore, a lock held for a long time, a file, a socket.
    ///
    /// ```swift
    /// try scheduler.submit { let reply = Scheduler.blocking { connection.receive() } … }
    /// ```
    ///
    /// While `body` blocks, another worker takes the place of this one, within about 100 us if operations wait. A
    /// worker whose body blocks without this call is replaced as well, within a few milliseconds, once the state of its
    /// thread shows that it blocks. On a thread that is not a worker, this method only calls `body`.
    ///
    /// - Returns: what `body` returns.
    /// - Throws: what `body` throws.
    /// - Complexity: two compare-exchanges, some 10 ns, if nothing blocks.
    /// - SeeAlso: ``Configuration/spareWorkers``, the limit on such replacements.
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

/// Calls a body nested in a wait as a separate task, which begins and ends here, so the body sees neither the
/// task-local values nor the cancellation of the waiting code.
func callIsolated(_ body: @escaping NestedBody, _ context: UnsafeMutableRawPointer?) {
    let call = unsafe NestedCall(body: body, context: context)
    Task.immediateDetached { unsafe call.body(call.context) }
}

// Sendable: the body is called before callIsolated returns, on the same thread.
@safe
private struct NestedCall: @unchecked Sendable {
    let body: NestedBody
    let context: UnsafeMutableRawPointer?
}
