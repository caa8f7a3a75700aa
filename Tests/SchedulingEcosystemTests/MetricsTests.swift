// SchedulerMetrics.swift: what a metrics factory receives, and that it matches the table in the article.

#if Ecosystem
    import CompositeOperationsTestSupport
    import CoreMetrics
    import Foundation
    import MetricsTestKit
    import Observability
    import PropertyTesting
    import PropertyTestingSupport
    import Scheduling
    import SchedulingEcosystem
    import ServiceLifecycle
    import ServiceLifecycleTestKit
    import Testing

    // The tests run one after another, because a process has only one recorder.
    @Suite(.serialized) struct MetricsTests {
        private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()

        private static func text(_ path: String) throws -> String {
            try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
        }

        /// Runs `count` bodies to completion.
        private func run(_ count: Int, on scheduler: Scheduler) async throws {
            let before = scheduler.statistics.executed
            for _ in 0..<count { try scheduler.submit {} }
            #expect(await eventually { scheduler.statistics.executed == before + count })
        }

        @Test func `counters grow by the work done since the last reading`() async throws {
            let factory = TestMetrics()
            let metrics = SchedulerMetrics(factory)
            try await withScheduler(.init(workers: 2, name: "m-counters")) { scheduler in
                try await run(10, on: scheduler)
                #expect(metrics.collect())
                let scheduler_ = [("scheduler", "m-counters")]
                #expect(factory.counterTotal(label: "scheduler_executed_total", dimensions: scheduler_) == 10)
                try await run(5, on: scheduler)
                #expect(metrics.collect())
                #expect(metrics.collect())
                #expect(factory.counterTotal(label: "scheduler_executed_total", dimensions: scheduler_) == 15)
                let submitted = scheduler_ + [("priority", "default")]
                #expect(factory.counterTotal(label: "scheduler_submitted_total", dimensions: submitted) == 15)
            }
        }

        @Test func `gauges report waiters, and end with the scheduler`() async throws {
            let factory = TestMetrics()
            let metrics = SchedulerMetrics(factory)
            let name = [("scheduler", "m-gauges")]
            do {
                let scheduler = try Scheduler(.init(workers: 2, name: "m-gauges"))
                scheduler.suspend()
                for _ in 0..<7 { try scheduler.submit {} }
                metrics.collect()
                let waiting = try factory.expectMeter("scheduler_waiting", name + [("priority", "default")])
                #expect(waiting.lastValue == 7)
                #expect(try factory.expectMeter("scheduler_suspended", name).lastValue == 1)
                scheduler.resume()
                try await scheduler.shutdown()
            }
            #expect(
                await eventually { !SchedulerState.all().contains { $0.name == "m-gauges" } })
            metrics.collect()
            #expect(factory.meters(label: "scheduler_suspended", dimensions: name).isEmpty)
        }

        @Test func `times are reported while recording`() async throws {
            let factory = TestMetrics()
            Recorder.start()
            let metrics = SchedulerMetrics(factory)
            try await withScheduler(.init(workers: 2, name: "m-times")) { scheduler in
                try await run(10, on: scheduler)
                metrics.collect()
            }
            Recorder.stop()
            #expect(try factory.expectTimer("scheduler_wait_seconds").values.count >= 10)
            #expect(try factory.expectTimer("scheduler_run_seconds").values.count >= 10)
        }

        @Test func `as a service it reads at intervals, and once at end`() async throws {
            let factory = TestMetrics()
            let clock = ManualClock()
            let metrics = SchedulerMetrics(factory, interval: .seconds(10), clock: clock)
            let scheduler = try Scheduler(.init(workers: 1, name: "m-service"))
            let name = [("scheduler", "m-service")]
            func executed() -> Int64 {
                factory.counterTotal(label: "scheduler_executed_total", dimensions: name)
            }
            try await testGracefulShutdown { trigger in
                async let end: Void = metrics.run()
                #expect(await eventually { clock.sleepers == 1 })
                try await run(3, on: scheduler)
                clock.advance(by: .seconds(10))
                #expect(await eventually { executed() == 3 })
                #expect(await eventually { clock.sleepers == 1 })
                try await run(2, on: scheduler)
                trigger.triggerGracefulShutdown()
                try await end
            }
            #expect(executed() == 5)
            try await scheduler.shutdown()
        }

        @Test func `the article's table matches the metrics`() async throws {
            let factory = TestMetrics()
            Recorder.start()
            let metrics = SchedulerMetrics(factory)
            try await withScheduler(.init(workers: 1, name: "m-table")) { scheduler in
                try await run(1, on: scheduler)
                metrics.collect()
            }
            Recorder.stop()
            func row(_ label: String, _ kind: String, _ dimensions: [(String, String)]) -> String {
                "\(label) \(kind) \(dimensions.map(\.0).joined(separator: ", "))"
            }
            var emitted: Set<String> = []
            for each in factory.counters { emitted.insert(row(each.label, "counter", each.dimensions)) }
            for each in factory.meters { emitted.insert(row(each.label, "gauge", each.dimensions)) }
            for each in factory.timers { emitted.insert(row(each.label, "timer", each.dimensions)) }
            let article = try Self.text(
                "Sources/SchedulingEcosystem/SchedulingEcosystem.docc/SchedulingEcosystem.md")
            let rows = article.split(separator: "\n").filter { $0.hasPrefix("| `scheduler_") }.map {
                $0.split(separator: "|").map {
                    $0.trimmingCharacters(in: .whitespaces).replacingOccurrences(of: "`", with: "")
                }
            }
            #expect(Set(rows.map { "\($0[0]) \($0[1]) \($0[3])" }) == emitted)
            let units = SchedulerMetric.allCases.map { "\($0.rawValue) \($0.unit)" }
            #expect(rows.map { "\($0[0]) \($0[2])" } == units)
        }

        @Test func `the board uses only metrics of the table`() throws {
            let board = try Self.text("Examples/server/grafana.json")
            _ = try JSONSerialization.jsonObject(with: Data(board.utf8))
            let asked = Set(board.matches(of: /scheduler_[a-z_]+/).map { String($0.output) })
            let known = SchedulerMetric.allCases.flatMap { metric in
                metric.kind == .timer
                    ? ["_bucket", "_sum", "_count"].map { metric.rawValue + $0 } : [metric.rawValue]
            }
            #expect(!asked.isEmpty && asked.isSubset(of: known), "\(asked.subtracting(known))")
        }
    }
#endif
