internal import Dispatch
internal import Glibc
internal import Synchronization

/// Tells of bodies that run for too long, and of operations that wait for too long, of all schedulers of the process.
///
/// ```swift
/// let watch = StallWatch(body: .seconds(1), wait: .seconds(1)) { stall in logger.warning("\(stall)") }
/// ```
///
/// It looks at the schedulers from a thread of its own, four times within the shorter limit, a millisecond apart at least: so a
/// stall is told when its limit has passed, or a quarter of that later. Operations pay nothing. Each stall is told once. It
/// watches until it is stopped, or nobody refers to it any more.
public final class StallWatch: Sendable {
    private let thread: StartedThread
    private let bell: DispatchSemaphore
    private let isStopped = Atomic(false)

    /// Begins to watch.
    ///
    /// - Parameters:
    ///   - body: how long a body may run.
    ///   - wait: how long an operation may wait for a worker.
    ///   - stacks: whether a thread whose body stalls is asked where it is: by a signal, which ends early some calls of the kernel
    ///     that sleep, as `poll` and `nanosleep`, see ``ThreadStack``.
    ///   - tell: called on the watch's thread, which looks at nothing meanwhile; without it, a stall is written to standard
    ///     error.
    /// - Precondition: both are positive; there can be one thread more.
    public init(
        body: Duration = .seconds(1), wait: Duration = .seconds(1), stacks: Bool = false,
        tell: (@Sendable (Stall) -> Void)? = nil
    ) {
        precondition(
            body > .zero && wait > .zero, "The limits of a StallWatch are positive, not \(min(body, wait)).")
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

    /// Ends the watch, and waits for nobody: this may be anywhere.
    deinit {
        guard !isStopped.exchange(true, ordering: .relaxed) else { return }
        bell.signal()
        thread.leave()
    }

    private static func writeToStandardError(_ stall: Stall) {
        let text = "\(stall)\n"
        _ = write(STDERR_FILENO, text, text.utf8.count)
    }

    /// Ends the watch, and waits for a call of `tell` that goes on; not in `tell` itself, which is called no more then. A second
    /// call does nothing, and does not wait.
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
