// Server.swift - requests whose work runs on the server's own scheduler, which can be measured, traced and stopped.
//
//   swift run --package-path Examples/server server [PORT]       0, or none: any free port, which it prints
//   curl http://127.0.0.1:PORT/sum/1000
//   curl http://127.0.0.1:PORT/metrics
//   curl http://127.0.0.1:PORT/trace > trace.json                recent activity of its threads: open it in ui.perfetto.dev
//   kill -TERM PID                                               answers accepted requests, and exits
//
// The group ends its services from the last to the first: for a moment requests are accepted as before, then the server answers its
// last request, then the scheduler drains. The dashboard for the metrics is grafana.json, next to Package.swift.
//
// With SERVER_LOG_REQUESTS=1 it prints the number of each request that it begins, and of each that is done, for
// Scripts/server-restarts, which counts lost requests.

import CompositeOperations
import CoreMetrics
import Hummingbird
import InMemoryTracing
import Logging
import Observability
import Scheduling
import SchedulingEcosystem
import ServiceLifecycle
import Tracing
import UnixSignals

@main
struct Server {
    static func main() async throws {
        let exposition = Exposition()
        MetricsSystem.bootstrap(exposition)
        let tracer = InMemoryTracer()
        InstrumentationSystem.bootstrap(tracer)
        var logger = Logger(label: "server") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = .warning

        let log = SchedulerLog(logger)
        RunTracing.start()
        Recorder.start()  // for the metrics of times, and for traces
        let metrics = SchedulerMetrics()
        let scheduler = try Scheduler(.init(workers: 2, name: "requests"))

        let environment = Environment()
        let requests = Requests(scheduler, prints: environment.get("SERVER_LOG_REQUESTS") == "1")
        let router = Router()
        router.get("sum/:count") { request, context in
            try await requests.sum(
                to: context.parameters.require("count", as: Int.self),
                number: request.uri.queryParameters["request"].map(String.init))
        }
        router.get("metrics") { _, _ in
            metrics.collect()
            return exposition.text
        }
        router.get("trace") { _, _ in Recorder.recording().chromeTrace() }
        router.get("spans") { _, _ in "\(tracer.popFinishedSpans().count)\n" }

        let port = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 0
        let server = Application(
            router: router, configuration: .init(address: .hostname("127.0.0.1", port: port)),
            onServerRunning: { channel in
                print("listening on port \(channel.localAddress?.port ?? 0)", flush: true)
            }, logger: logger)
        let group = ServiceGroup(
            configuration: .init(
                services: [
                    SchedulerService(scheduler, deadline: .seconds(20)), metrics, server,
                    Notice(.milliseconds(250)),
                ],
                gracefulShutdownSignals: [.sigterm], logger: logger))
        try await group.run()
        log.stop()
        print(
            "drained: \(scheduler.statistics.executed) executed, \(scheduler.statistics.cancelled) cancelled")
    }
}

/// How long the server continues after the signal: requests that were in flight are answered, and a load balancer sends later
/// requests elsewhere. A server that stops listening at once resets connections that are queued in the kernel.
struct Notice: Service {
    private let duration: Duration

    init(_ duration: Duration) { self.duration = duration }

    func run() async throws {
        try await gracefulShutdown()
        try await Task.sleep(for: duration)
    }
}
