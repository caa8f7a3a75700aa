internal import CThreadStack

/// Where a thread is: the functions on its stack, the innermost first.
///
/// Read by means of a signal, `SIGPROF`, whose handler stays installed after the first use; unavailable while a profiler has
/// installed its own. A system call that the signal interrupts is restarted, except for those that never are, such as `poll`, `epoll_wait`
/// and `nanosleep` (signal(7)): they return early, with `EINTR`.
public struct ThreadStack: Hashable, Sendable, Codable, CustomStringConvertible {
    /// The functions; empty if they could not be read.
    public let functions: [String]
    /// Why there are no functions; nil if there are some.
    public let reason: String?

    /// Reads the stack of a thread of the process.
    ///
    /// - Parameters:
    ///   - thread: the kernel's ID of the thread, as in `/proc/self/task`.
    ///   - limit: the longest time to wait for the thread's answer.
    /// - Complexity: about 100 µs; the first call also reads the symbols of the program, which takes a few milliseconds.
    public init(of thread: Int, limit: Duration = .seconds(1)) {
        let (seconds, attoseconds) = min(limit, .seconds(3_600)).components
        let limit_ms = max(1, Int32(seconds * 1_000 + attoseconds / 1_000_000_000_000_000))
        var count: Int32 = 0
        var result = THREAD_STACK_GONE
        let addresses = [UInt](unsafeUninitializedCapacity: 64) { buffer, used in
            result = thread_stack_read(Int32(clamping: thread), buffer.baseAddress!, 64, &count, limit_ms)
            used = Int(count)
        }
        reason =
            switch result {
            case THREAD_STACK_READ: addresses.isEmpty ? "nothing was found on its stack" : nil
            case THREAD_STACK_TAKEN: "SIGPROF, which asks a thread for its stack, has another handler"
            case THREAD_STACK_GONE: "there is no thread \(thread)"
            default:
                "thread \(thread) has not answered within \(limit_ms) ms: it blocks SIGPROF, or the kernel holds it"
            }
        // A return address is the address after the call.
        functions = addresses.map { Symbols.name(of: UInt64($0) - 1) ?? Self.nameOfLibrary($0 - 1) }
    }

    private static func nameOfLibrary(_ address: UInt) -> String {
        let text = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { buffer in
            thread_stack_name(address, buffer.baseAddress!, Int32(buffer.count))
            return String(cString: buffer.baseAddress!)
        }
        return text.isEmpty ? "0x" + String(address, radix: 16) : text
    }

    /// A line for each function, or why there are none.
    public var description: String { reason ?? functions.joined(separator: "\n") }
}
