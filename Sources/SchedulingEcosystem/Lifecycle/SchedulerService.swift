// SchedulerService.swift - a scheduler that shuts down with its service group.

#if Ecosystem
    public import Scheduling
    public import ServiceLifecycle

    /// A scheduler as a service: a graceful shutdown drains it, up to a deadline.
    ///
    /// ```swift
    /// let group = ServiceGroup(
    ///     services: [SchedulerService(scheduler, deadline: .seconds(20)), server],
    ///     gracefulShutdownSignals: [.sigterm], logger: logger)
    /// try await group.run()
    /// ```
    ///
    /// A group shuts its services down in reverse order, one after another. So list the scheduler before whatever submits to it:
    /// then the server has answered its last request before the scheduler stops accepting work.
    public struct SchedulerService: Service {
        private let scheduler: Scheduler
        private let deadline: Duration

        /// Creates the service.
        ///
        /// - Parameters:
        ///   - scheduler: accepts nothing from outside once the shutdown has begun.
        ///   - deadline: how long waiting operations may take to begin; the rest are then cancelled. The shutdown waits for
        ///     running bodies in any case.
        /// - Precondition: the scheduler is not `Scheduler.shared`, which is never shut down, and the deadline is not negative.
        public init(_ scheduler: Scheduler, deadline: Duration) {
            precondition(
                scheduler !== Scheduler.shared, "SchedulerService: the shared scheduler is never shut down")
            precondition(deadline >= .zero, "SchedulerService: the deadline \(deadline) is negative")
            self.scheduler = scheduler
            self.deadline = deadline
        }

        /// Waits for the graceful shutdown, and drains the scheduler. If the task is cancelled instead, operations
        /// that have not begun are cancelled at once.
        ///
        /// - Throws: ``SchedulerServiceError``; a `CancellationError` when the task was cancelled.
        public func run() async throws {
            do { try await gracefulShutdown() } catch {
                _ = try await shutDown(.cancelPending)
                throw error
            }
            let cancelled = try await shutDown(.deadline(deadline))
            if cancelled > 0 {
                throw SchedulerServiceError.deadlinePassed(deadline: deadline, cancelled: cancelled)
            }
        }

        /// - Returns: how many operations it has cancelled.
        private func shutDown(_ policy: Scheduler.ShutdownPolicy) async throws(SchedulerServiceError) -> Int {
            let before = scheduler.statistics.cancelled
            // Detached: a task on the scheduler would wait for its own end.
            let result = await Task.detached { [scheduler] in
                do throws(SchedulerError) {
                    try await scheduler.shutdown(policy)
                    return Result<Void, SchedulerError>.success(())
                } catch {
                    return .failure(error)
                }
            }.value
            do throws(SchedulerError) { try result.get() } catch { throw .shutdownFailed(error) }
            return scheduler.statistics.cancelled - before
        }
    }

    /// Why a ``SchedulerService`` did not shut down cleanly.
    public enum SchedulerServiceError: Error, CustomStringConvertible {
        /// The deadline passed before `cancelled` operations had begun, and they were cancelled.
        case deadlinePassed(deadline: Duration, cancelled: Int)
        /// The scheduler could not be shut down, and keeps running.
        case shutdownFailed(SchedulerError)

        /// The cause, and a remedy.
        public var description: String {
            switch self {
            case .deadlinePassed(let deadline, let cancelled):
                "SchedulerService: \(cancelled) operations had not begun \(deadline) after the shutdown, and were "
                    + "cancelled; allow a longer deadline, or submit fewer operations"
            case .shutdownFailed(let error):
                "SchedulerService: the scheduler could not be shut down, and keeps running: \(error)"
            }
        }
    }
#endif
