// SchedulerLog.swift - diagnostics, stalls and the problems of dumps, as log entries.

#if Ecosystem
    public import Logging
    public import Observability
    internal import Runs

    /// Writes to a logger what needs attention: refused calls, unobserved failures, stalls of schedulers, and problems of
    /// dumps. Each entry is a `warning`, with its parts as metadata.
    ///
    /// ```swift
    /// let log = SchedulerLog(Logger(label: "scheduler"))
    /// ```
    ///
    /// A process has one listener to diagnostics. A log replaces the previous listener, which listens again once the log has
    /// stopped. A log listens until it is stopped or its last reference is released.
    public final class SchedulerLog: Sendable {
        private let logger: Logger
        private let listener: RunID
        private let watch: StallWatch?

        /// Starts writing.
        ///
        /// - Parameters:
        ///   - logger: called on the thread concerned; for stalls, on that of a `StallWatch`.
        ///   - body: how long a body may run; nil: stalls are not detected.
        ///   - wait: how long an operation may wait for a worker.
        ///   - stacks: as for `StallWatch`.
        /// - Precondition: as for `StallWatch`.
        public init(
            _ logger: Logger, body: Duration? = .seconds(1), wait: Duration = .seconds(1),
            stacks: Bool = false
        ) {
            self.logger = logger
            watch = body.map { body in
                StallWatch(body: body, wait: wait, stacks: stacks) { Self.write($0, to: logger) }
            }
            listener = Diagnostics.listen { Self.write($0, to: logger) }
        }

        deinit { stop() }

        /// Stops the log: nothing more is written once this has returned, except what a thread is already about to write.
        public func stop() {
            Diagnostics.stop(listener)
            watch?.stop()
        }

        /// Writes the problems of a dump, each as an entry.
        ///
        /// - Returns: how many there were.
        @discardableResult
        public func write(problemsOf dump: Dump) -> Int {
            for problem in dump.problems {
                logger.warning("\(problem)", metadata: ["event": "problem"])
            }
            return dump.problems.count
        }

        private static func write(_ diagnostic: Diagnostic, to logger: Logger) {
            var metadata: Logger.Metadata = ["event": "diagnostic"]
            if let operation = diagnostic.operation {
                metadata["operation"] = "\(operation)"
                metadata["attempt"] = "\(diagnostic.attempt)"
                metadata["state"] = "\(diagnostic.state ?? "")"
            }
            logger.warning("\(diagnostic.message)", metadata: metadata)
        }

        private static func write(_ stall: Stall, to logger: Logger) {
            var metadata: Logger.Metadata = [
                "event": "stall", "scheduler": "\(stall.scheduler)",
                "seconds": "\(stall.duration / .seconds(1))",
            ]
            switch stall.kind {
            case .body(let worker, let stack):
                metadata["worker"] = "\(worker.index)"
                metadata["thread"] = "\(worker.thread)"
                metadata["activity"] = "\(worker.activity.rawValue)"
                if let stack { metadata["stack"] = "\(stack)" }
            case .wait(let queue, let waiting):
                metadata["queue"] = "\(queue)"
                metadata["waiting"] = "\(waiting)"
            }
            logger.warning("\(stall)", metadata: metadata)
        }
    }
#endif
