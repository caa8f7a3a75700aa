import Foundation
import Observability
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

/// The fields of a trace line that the tests check.
private struct TraceLine: Decodable {
    let ph: String
    let pid: Int
    let name: String
    let tid: Int?
    let ts: Double?
    let dur: Double?
    let id: Int?
    let bp: String?
    let s: String?
}

private struct TraceFile: Decodable {
    let traceEvents: [TraceLine]
}

private func parsed(_ recording: Recording) throws -> [TraceLine] {
    try JSONDecoder().decode(TraceFile.self, from: Data(recording.chromeTrace().utf8)).traceEvents
}

private typealias Event = Recording.Event

extension OneRecorder {
    @Suite struct ChromeTraceTests {
        private let one = Recording.Operation(run: 1, context: 2, extra: 3)
        private let other = Recording.Operation(run: 1, context: 2, extra: 4)

        @Test func `bodies are slices, and an arrow leads from each handover to the begin`()
            throws
        {
            let recording = Recording(tracks: [
                .init(
                    thread: 7, name: "w-0",
                    events: [
                        Event(.search, at: 1_000), Event(.begin, at: 2_500, operation: one),
                        Event(.submit, at: 3_000, operation: other), Event(.end, at: 9_001, operation: one),
                        Event(.park, at: 9_500),
                    ]),
                .init(thread: 8, name: "main", events: [Event(.submit, at: 1_500, operation: one)]),
            ])
            let lines = try parsed(recording)
            #expect(
                lines.filter { $0.ph == "M" }.map(\.name) == ["process_name", "thread_name", "thread_name"])
            let slices = lines.filter { $0.ph == "X" && $0.tid == 7 && ($0.dur ?? 0) > 0 }
            #expect(slices.map(\.name) == ["search", "operation"])
            #expect(slices.map(\.ts) == [0, 1.5])
            #expect(slices.map(\.dur) == [1.5, 6.501])
            let (start, finish) = (lines.filter { $0.ph == "s" }, lines.filter { $0.ph == "f" })
            #expect(start.map(\.tid) == [8] && finish.map(\.tid) == [7])
            #expect(start.map(\.ts) == [0.5] && finish.map(\.ts) == [1.5])
            #expect(start.map(\.id) == finish.map(\.id) && finish.map(\.bp) == ["e"])
        }

        @Test func `a slice with no end lasts to the recording's end, one with no begin from its start`()
            throws
        {
            let recording = Recording(tracks: [
                .init(
                    thread: 7, name: "w-0",
                    events: [
                        Event(.mark, at: 1_000), Event(.end, at: 2_000, operation: one),
                        Event(.begin, at: 3_000, operation: one), Event(.block, at: 4_000),
                        Event(.unpark, at: 10_000),
                    ])
            ])
            let slices = try parsed(recording).filter { $0.ph == "X" }
            #expect(slices.map(\.ts) == [0, 2, 3])
            #expect(slices.map(\.dur) == [1, 7, 6])
        }

        @Test
        func `operations of one identity are joined in order, and refused ones are not`() {
            let recording = Recording(tracks: [
                .init(
                    thread: 1, name: "a",
                    events: [1, 2, 3].map { Event(.submit, at: $0, operation: one) }
                        + [Event(.submit, at: 4, operation: other), Event(.refuse, at: 5, operation: other)]),
                .init(
                    thread: 2, name: "b",
                    events: [
                        Event(.begin, at: 3, operation: one), Event(.begin, at: 9, operation: one),
                        Event(.begin, at: 10, operation: other),
                    ]),
            ])
            let joined = recording.handovers()
            #expect(joined.map(\.submitted.event) == [0, 1])
            #expect(joined.map(\.begun.event) == [0, 1])
            #expect(recording.waits.quantile(0) == .nanoseconds(2))
            #expect(recording.waits.quantile(1) == .nanoseconds(7))
            #expect("\(recording.waits)" == "2: 7 ns median, 7 ns p99, 7 ns longest")
        }

        @Test(arguments: [
            (7, "7 ns"), (1_342, "1.34 µs"), (27_297, "27.3 µs"), (272_967, "273 µs"), (3_051_712, "3.05 ms"),
            (60_000_000_000, "60 s"),
        ])
        func `times have a suitable unit`(wait_ns: UInt64, text: String) {
            let events = [
                Event(.submit, at: 5, operation: one), Event(.begin, at: 5 + wait_ns, operation: one),
            ]
            let recording = Recording(tracks: [.init(thread: 1, name: "a", events: events)])
            #expect("\(recording.waits)" == "1: \(text) median, \(text) p99, \(text) longest")
        }

        @Test func `where events were lost, only later ones are joined`() {
            let submissions = (0..<10 as Range<UInt64>).map { Event(.submit, at: 10 * $0, operation: one) }
            let begins = (5..<10 as Range<UInt64>).map { Event(.begin, at: 10 * $0 + 3, operation: one) }
            let recording = Recording(tracks: [
                .init(thread: 1, name: "a", events: submissions),
                .init(thread: 2, name: "b", events: begins, lost: 5),
            ])
            #expect(recording.waits.count == 4)
            #expect(recording.waits.quantile(1) == .nanoseconds(3))
        }

        @Test func `names with any characters are JSON strings`() throws {
            let name = "a\"b\\c\u{1}\n\u{7F}é😀"
            let recording = Recording(tracks: [
                .init(
                    thread: 1, name: name,
                    events: [Event(.steal, at: 5, number: 3), Event(.wake, at: 6, number: 1)])
            ])
            let data = Data(recording.chromeTrace().utf8)
            let file = try #require(JSONSerialization.jsonObject(with: data) as? [String: Any])
            let lines = try #require(file["traceEvents"] as? [[String: Any]])
            let names = lines.compactMap { ($0["args"] as? [String: Any])?["name"] as? String }
            #expect(names == ["schedulers", name])
        }

        @Test func `spans are slices with their names, inside their body`() throws {
            Recorder.start()
            let scheduler = try Scheduler(.init(workers: 1, name: "spans"))
            let counter = try CompletionCounter()
            try scheduler.submit(in: counter) {
                Recorder.span("loading", number: 7) { Recorder.mark("half") }
            }
            counter.wait()
            let recording = Recorder.recording()
            Recorder.stop()
            try scheduler.shutdown()
            #expect(Recorder.span("off") { 5 } == 5)
            let track = try #require(recording.tracks.first { $0.name.hasPrefix("spans-") })
            let slices = try parsed(Recording(tracks: [track])).filter { $0.ph == "X" }
            let span = try #require(slices.first { $0.name == "loading #7" })
            let body = try #require(slices.last { ($0.ts ?? 0) <= (span.ts ?? 0) && $0.name != "loading #7" })
            #expect(try #require(body.dur) >= #require(span.dur))
            #expect(track.events.filter { $0.kind == .mark }.map(\.name) == ["half"])
        }

        @Test func `an empty recording is a trace`() throws {
            #expect(try parsed(Recording(tracks: [])).map(\.ph) == ["M"])
            #expect(Recording(tracks: []).waits.description == "none")
            #expect(Recording(tracks: []).runs.quantile(0.5) == nil)
        }

        @Test
        func `in a tree of operations each begin has its arrow, and its slice its function's name`()
            throws
        {
            Recorder.start()
            let scheduler = try Scheduler(.init(workers: 2, name: "trace"))
            let counter = try CompletionCounter()
            grow(5, on: scheduler, counter)
            counter.wait()
            // Other tests run meanwhile. A recording says nothing about the time before any of its tracks
            // last lost events, so tracks that lost events are left out.
            let recording = Recording(tracks: Recorder.recording().tracks.filter { $0.lost == 0 })
            Recorder.stop()
            try scheduler.shutdown()
            let begun = recording.tracks.filter { $0.name.hasPrefix("trace-") }.flatMap(\.events)
                .count { $0.kind == .begin }
            let joined = recording.handovers().count {
                recording.tracks[$0.begun.track].name.hasPrefix("trace-")
            }
            #expect(begun == 63)
            #expect(joined == begun)
            let lines = try parsed(recording)
            #expect(lines.contains { $0.ph == "X" && $0.name.contains("grow") })
            let phases = Dictionary(grouping: lines, by: \.ph)
            #expect(Set(phases["s"]?.compactMap(\.id) ?? []) == Set(phases["f"]?.compactMap(\.id) ?? []))
            #expect(lines.allSatisfy { $0.ph == "M" || ($0.ts ?? -1) >= 0 })
        }
    }
}

/// Submits an operation that submits two more, and so on.
private func grow(_ depth: Int, on scheduler: Scheduler, _ counter: CompletionCounter) {
    try! scheduler.submit(in: counter) {
        if depth > 0 { for _ in 0..<2 { grow(depth - 1, on: scheduler, counter) } }
    }
}
