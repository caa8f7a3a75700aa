// RunLoopPump.swift - the main run loop, served by the main thread while it waits for an outcome.

internal import CompositeOperations
internal import Foundation
internal import Runs

/// Lets a wait on the main thread serve the main run loop.
public enum RunLoopPump {
    /// From now on, a wait on the main thread, for a sync operation or by `wait()`, runs the main run loop in its default
    /// mode: timers, ports and other sources, in addition to the main dispatch queue, which is served anyway.
    ///
    /// Code called by the run loop may itself wait, except in an item of the main dispatch queue, where a wait serves
    /// nothing.
    public static func install() {
        MainQueue.install { timeout in
            let limit =
                timeout.map { timeout in
                    let (seconds, attoseconds) = timeout.components
                    return Date(timeIntervalSinceNow: Double(seconds) + Double(attoseconds) * 1e-18)
                } ?? .distantFuture
            return RunLoop.main.run(mode: .default, before: limit)
        }
    }
}
