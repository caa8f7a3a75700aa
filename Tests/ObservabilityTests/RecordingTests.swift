// RecordingTests - what is derived from given events: handovers, slices, times, and the trace file.

import Foundation
@testable import Observability
import PropertyTestingSupport
import Testing

private typealias Event = Recording.Event
private typealias Track = Recording.Track

private let one = Recording.Operation(run: 1, context: 2, extra: 3)
private let other = Recording.Operation(run: 1, context: 2, extra: 4)

@Suite(.inTurn) struct RecordingTests {
    // MARK: Handovers

    @Test func `handovers are joined after the last loss of any track, and all if none lost events`() {
        let submissions = (0..<10 as Range<UInt64>).map { Event(.submit, at: 10 * $0, operation: one) }
        let begins = (0..<10 as Range<UInt64>).map { Event(.begin, at: 10 * $0 + 3, operation: one) }
        let all = [
            Track(thread: 1, name: "a", events: submissions), Track(thread: 2, name: "b", events: begins),
            Track(thread: 3, name: "c", events: [Event(.mark, at: 95)]),
        ]
        #expect(Recording(tracks: all).handovers().count == 10)
        let cut = [
            Track(thread: 1, name: "a", events: Array(submissions[2...]), lost: 2),
            Track(thread: 2, name: "b", events: Array(begins[5...]), lost: 5), all[2],
        ]
        #expect(Recording(tracks: cut).handovers().map(\.submitted.event) == [4, 5, 6, 7])
    }

    @Test func `a begin at its submission's time is ordered after it, and a timer hands over`() {
        let recording = Recording(tracks: [
            Track(thread: 1, name: "a", events: [Event(.begin, at: 5, operation: one)]),
            Track(thread: 2, name: "b", events: [Event(.timer, at: 5, operation: one)]),
        ])
        #expect(recording.handovers().map(\.begun.track) == [0])
    }

    @Test(arguments: [Recording.Kind.refuse, .cancel])
    func `a refused or cancelled submission is not joined to the next begin`(kind: Recording.Kind) {
        let recording = Recording(tracks: [
            Track(
                thread: 1, name: "a",
                events: [
                    Event(.submit, at: 1, operation: one), Event(kind, at: 2, operation: one),
                    Event(.submit, at: 3, operation: one), Event(.begin, at: 4, operation: one),
                ])
        ])
        #expect(recording.handovers().map { [$0.submitted.event, $0.begun.event] } == [[2, 3]])
        #expect(recording.waits.quantile(1) == .nanoseconds(1))
    }

    // MARK: Slices

    private func slices(_ events: Event...) -> [String] {
        Track(thread: 1, name: "a", events: events).slices().map {
            "\($0.kind) \($0.begin_ns)-\($0.end_ns.map { "\($0)" } ?? "")"
        }
    }

    @Test func `a search, a sleep or a resume ends the preceding slices`() {
        #expect(
            slices(Event(.begin, at: 1, operation: one), Event(.block, at: 2), Event(.search, at: 4))
                == ["body 1-4", "block 2-4", "search 4-"])
        #expect(
            slices(Event(.search, at: 1), Event(.park, at: 2), Event(.unpark, at: 5), Event(.search, at: 6))
                == ["search 1-2", "sleep 2-5", "search 6-"])
        #expect(
            slices(Event(.begin, at: 1, operation: one), Event(.spanBegin, at: 2), Event(.resume, at: 7))
                == ["body 1-7", "span 2-7"])
        #expect(
            slices(Event(.search, at: 1), Event(.begin, at: 3, operation: one)) == ["search 1-3", "body 3-"])
    }

    @Test func `a body's end ends the slices above it, and no other body`() {
        #expect(
            slices(
                Event(.begin, at: 1, operation: one), Event(.begin, at: 2, operation: other),
                Event(.block, at: 3), Event(.end, at: 5, operation: one))
                == ["body 1-5", "body 2-5", "block 3-5"])
        #expect(
            slices(
                Event(.begin, at: 2, operation: one), Event(.end, at: 3, operation: other),
                Event(.end, at: 4, operation: one))
                == ["body 2-4"])
        #expect(
            slices(Event(.mark, at: 1), Event(.end, at: 3, operation: other), Event(.search, at: 4))
                == ["body 1-3", "search 4-"])
    }

    @Test func `runs are bodies with both begin and end recorded`() {
        let track = Track(
            thread: 1, name: "a",
            events: [
                Event(.mark, at: 1), Event(.end, at: 3, operation: one),
                Event(.begin, at: 10, operation: one),
                Event(.end, at: 15, operation: one), Event(.begin, at: 20, operation: one),
            ], lost: 1)
        let runs = Recording(tracks: [track]).runs
        #expect(runs.count == 1)
        #expect(runs.quantile(1) == .nanoseconds(5))
        #expect(runs.quantile(1.5) == nil && runs.quantile(-0.1) == nil && runs.quantile(.nan) == nil)
    }

    @Test(arguments: [
        (Duration.zero, "0 ns"), (.nanoseconds(1), "1 ns"), (.microseconds(1), "1 µs"),
        (.milliseconds(1), "1 ms"),
        (.seconds(1), "1 s"), (.nanoseconds(9_994), "9.99 µs"), (.nanoseconds(99_940), "99.9 µs"),
        (.seconds(1_234), "1234 s"), (.nanoseconds(1_500), "1.5 µs"),
    ])
    func `a time has three digits, or all before the point`(time: Duration, text: String) {
        #expect(time.short == text)
    }

    // MARK: The file

    private func lines(_ tracks: Track...) throws -> [[String: Any]] {
        let data = Data(Recording(tracks: tracks).chromeTrace().utf8)
        let file = try #require(JSONSerialization.jsonObject(with: data) as? [String: Any])
        return try #require(file["traceEvents"] as? [[String: Any]])
    }

    @Test func `names of marks and spans are JSON strings, whatever they contain`() throws {
        let text: StaticString = "a \"name\"\\ with\n\u{1F}"
        let name = UInt64(UInt(bitPattern: text.utf8Start))
        let lines = try lines(
            Track(
                thread: 1, name: "a",
                events: [
                    Event(.mark, at: 1, number: name), Event(.spanBegin, at: 2, number: name),
                    Event(.spanEnd, at: 7_004, number: name),
                    Event(.spanBegin, at: 7_005, number: name, detail: 8),
                ]))
        let names = lines.dropFirst(2).compactMap { $0["name"] as? String }
        #expect(names.sorted() == ["\(text)", "\(text)", "\(text) #8"].sorted())
        let span = try #require(lines.first { $0["ph"] as? String == "X" })
        #expect(span["dur"] as? Double == 7.002 && span["ts"] as? Double == 0.001)
    }

    @Test func `events name their subject, and an arrow begins in a slice`() throws {
        let lines = try lines(
            Track(
                thread: 1, name: "a",
                events: [
                    Event(.steal, at: 1, number: 3), Event(.wake, at: 2, number: 4),
                    Event(.replace, at: 3, number: 5), Event(.submit, at: 4, operation: one),
                    Event(.timer, at: 5, operation: one), Event(.refuse, at: 6, operation: one),
                    Event(.begin, at: 7, operation: one), Event(.end, at: 8, operation: one),
                ]))
        func line(_ name: String) throws -> [String: Any] {
            try #require(lines.first { $0["name"] as? String == name })
        }
        func arguments(_ name: String) throws -> [String: Any] {
            try #require(try line(name)["args"] as? [String: Any])
        }
        #expect(try arguments("steal")["operations"] as? Int == 3)
        #expect(try arguments("wake")["worker"] as? Int == 4)
        #expect(try arguments("replaced")["worker"] as? Int == 5)
        for name in ["submit", "timer", "refused", "operation"] {
            #expect(
                try arguments(name) as? [String: String] == ["run": "0x1", "context": "0x2", "extra": "0x3"])
        }
        #expect(try line("submit")["ph"] as? String == "X" && line("timer")["ph"] as? String == "X")
        #expect(try line("refused")["ph"] as? String == "i" && line("steal")["ph"] as? String == "i")
    }
}
