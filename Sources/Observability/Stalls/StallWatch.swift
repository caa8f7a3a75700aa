internal import Dispatch
internal import Glibc
internal import Synchronization

/// Tells of bodies that run for too long, and of operations that wait for too long, of all schedulers of the process.
///
/// ```swift
/// let watch = StallWatch(body: .seconds(1), wait: .seconds(1)) { stall in logger.warning("\(stall)") }
/// ```
///
/// It looks at the schedulers from a thread of its own, four times within the shorter limit, so that a stall is told after
/// one to one and a quarter of it; operations pay nothing. Each stall is told once. It watches until it is stopped, or its last
/// reference goes.
public final class StallWatch: Sendable {
    private let thread: StartedThread
    private let bell: DispatchSemaphore
    private let isStopped = Atomic(false)

    /// Begins to watch.
    ///
    /// - Parameters:
    ///   - body: how long a body may run.
    ///   - wait: how long an operation that was submitted from outside may wait for a worker.
    ///   - tell: called on the watch's thread, which looks at nothing meanwhile; without it, a stall is written to standard
    ///     error.
    /// - Precondition: both are positive; there can be one thread more.
    public init(
        body: Duration = .seconds(1), wait: Duration = .seconds(1),
        tell: (@Sendable (Stall) -> Void)? = nil
    ) {
        precondition(body > .zero && wait > .zero, "A stall of \(min(body, wait)) is none.")
        let bell = DispatchSemaphore(value: 0)
        self.bell = bell
        let pause = min(body, wait) / 4
        thread = StartedThread("stalls") {
            var finder = StallFinder(bodyLimit: body, waitLimit: wait)
            while bell.wait(timeout: .now() + pause.inSeconds) == .timedOut {
                for stall in finder.look(at: SchedulerState.all(), at: .now) {
                    (tell ?? Self.writeToStandardError)(stall)
                }
            }
        }
    }

    deinit { stop() }

    private static func writeToStandardError(_ stall: Stall) {
        let text = "\(stall)\n"
        _ = write(STDERR_FILENO, text, text.utf8.count)
    }

    /// Ends the watch, when a call of `tell` has returned; that may call it, too, and then it is the last one.
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
