internal import Dispatch
internal import Glibc
internal import Synchronization

/// Reports bodies that run for too long, and operations that wait for too long, in all schedulers of the process.
///
/// ```swift
/// let watch = StallWatch(body: .seconds(1), wait: .seconds(1)) { stall in logger.warning("\(stall)") }
/// ```
///
/// The watch samples the schedulers on a dedicated thread, four times within the shorter limit and at least a millisecond apart,
/// so a stall is reported when its limit has passed, or up to a quarter of the limit later. Operations pay nothing. Each stall is
/// reported once. The watch runs until it is stopped or its last reference is released.
public final class StallWatch: Sendable {
    private let thread: StartedThread
    private let bell: DispatchSemaphore
    private let isStopped = Atomic(false)

    /// Starts watching.
    ///
    /// - Parameters:
    ///   - body: how long a body may run.
    ///   - wait: how long an operation may wait for a worker.
    ///   - stacks: whether the stack of a thread whose body stalls is read, by a signal that makes some sleeping system calls,
    ///     such as `poll` and `nanosleep`, return early; see ``ThreadStack``.
    ///   - tell: called on the watch's thread, which takes no samples meanwhile; without it, a stall is written to standard error.
    /// - Precondition: both limits are positive; a thread can be created.
    public init(
        body: Duration = .seconds(1), wait: Duration = .seconds(1), stacks: Bool = false,
        tell: (@Sendable (Stall) -> Void)? = nil
    ) {
        precondition(
            body > .zero && wait > .zero, "StallWatch limits must be positive, not \(min(body, wait)).")
        let bell = DispatchSemaphore(value: 0)
        self.bell = bell
        let pause = max(min(body, wait) / 4, .milliseconds(1))
        thread = StartedThread("stalls") {
            var finder = StallFinder(bodyLimit: body, waitLimit: wait, readsStacks: stacks)
            while bell.wait(timeout: .now() + pause.inSeconds) == .timedOut {
                for stall in finder.look(at: SchedulerState.all(), at: .now) {
                    (tell ?? Self.writeToStandardError)(stall)
                }
            }
        }
    }

    /// Ends the watch without waiting, since this may run on any thread.
    deinit {
        guard !isStopped.exchange(true, ordering: .relaxed) else { return }
        bell.signal()
        thread.leave()
    }

    private static func writeToStandardError(_ stall: Stall) {
        let text = "\(stall)\n"
        _ = write(STDERR_FILENO, text, text.utf8.count)
    }

    /// Ends the watch, and waits for a call of `tell` in progress, unless this is called from `tell` itself. After that `tell` is
    /// no longer called. A second call does nothing, and does not wait.
    public func stop() {
        guard !isStopped.exchange(true, ordering: .relaxed) else { return }
        bell.signal()
        thread.end()
    }
}

extension Duration {
    fileprivate var inSeconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}
