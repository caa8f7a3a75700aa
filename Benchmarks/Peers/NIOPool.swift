#if canImport(NIOPosix)
    import BenchmarkCore
    import NIOCore
    import NIOPosix

    /// SwiftNIO's `NIOThreadPool`. It cannot wait for a batch of operations; a `Countdown` does that.
    final class NIOPool: PausablePool {
        static let name = "nio"
        static let version = "of Package.resolved"
        static let source = "Benchmarks/Peers/NIOPool.swift"

        static func form(_ workload: String) -> String? {
            switch workload {
            case "W19-task": "The task runs on the default executor."
            case _ where workload.hasPrefix("W27-"): "EventLoop.scheduleTask, called on the event loop."
            default: nil
            }
        }

        static func notApplicable(_ workload: String) -> String? {
            switch workload {
            case "W19", "W19-task": nil
            case _ where workload.hasPrefix("W27-"): nil
            default: withoutSuspension(workload)
            }
        }

        private let pool: NIOThreadPool
        let threads: Int
        private let gate = Gate()

        init(threads: Int) {
            pool = NIOThreadPool(numberOfThreads: threads)
            pool.start()
            self.threads = threads
        }

        static func largest(_ workload: String) -> Int? {
            // To remove a timer, the loop searches all of them.
            workload == "W27-cancel" ? 10_000 : nil
        }

        func run(_ workload: String, n: Int) throws -> Sample {
            switch workload {
            case "W19":
                return startsWhileBlocked(blockers: n) {
                    submit($0)
                } start: {
                    submit($0)
                }
            case "W19-task":
                return startsWhileBlocked(blockers: n) {
                    submit($0)
                } start: {
                    runAsTask($0)
                }
            case _ where workload.hasPrefix("W27-"):
                let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
                let sample = timers(workload, n: n, NIOTimers(eventLoop: group.next()))
                try group.syncShutdownGracefully()
                return sample
            default: return try runPausing(workload, n: n)
            }
        }

        func batch(of count: Int) -> Countdown { Countdown(count) }

        @inline(__always)
        func submit(_ job: some Job, in batch: Countdown) {
            // The thread that waits for the batch keeps it alive. A reference here would make all threads update
            // a count on one cache line.
            pool.submit { [unowned(unsafe) batch] _ in
                job.run()
                batch.leave()
            }
        }

        func wait(for batch: Countdown) { batch.wait() }

        @inline(__always)
        func submit(_ job: some Job) {
            pool.submit { _ in job.run() }
        }

        func pause() { gate.close(threads: threads) { submit($0) } }

        func unpause() { gate.open(threads: threads) }

        func shutdown() {
            do {
                try pool.syncShutdownGracefully()
            } catch {
                fatalError("nio: \(error)")
            }
        }

        func lanes(_ count: Int) -> [NIOLane] { (0..<count).map { _ in NIOLane() } }
    }

    /// Timers of an event loop.
    struct NIOTimers: TimerForm {
        let eventLoop: any EventLoop

        func set(_ delay_ns: Int, _ job: some Job) -> Scheduled<Void> {
            eventLoop.scheduleTask(in: .nanoseconds(Int64(delay_ns))) { job.run() }
        }

        func cancel(_ timer: Scheduled<Void>) { timer.cancel() }

        /// Does nothing: the loop drops pending timers when it is shut down.
        func discard(_ timers: [Scheduled<Void>]) {}

        func perform(_ body: @escaping @Sendable () -> Void) {
            let end = ChainEnd()
            eventLoop.execute {
                body()
                end.reach(0)
            }
            end.wait()
        }
    }

    /// A pool of one thread.
    final class NIOLane: Lane {
        private let pool = NIOThreadPool(numberOfThreads: 1)

        fileprivate init() { pool.start() }

        deinit { pool.shutdownGracefully { _ in } }

        @inline(__always)
        func submit(_ job: some Job) {
            pool.submit { _ in job.run() }
        }
    }
#else
    import BenchmarkCore

    /// Replaces SwiftNIO's pool in builds without it.
    final class NIOPool: Peer {
        static let name = "nio"
        static let version = "not built"
        static let source = "Benchmarks/Peers/NIOPool.swift"
        static let missing: String? = reason
        private static let reason =
            "NIOThreadPool was not built; the package trait NIO, which is on by default, builds it."

        static func notApplicable(_ workload: String) -> String? { reason }

        init(threads: Int) throws { throw PeerError(Self.reason) }

        func run(_ workload: String, n: Int) throws -> Sample { throw PeerError(Self.reason) }

        func shutdown() {}
    }
#endif
