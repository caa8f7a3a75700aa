internal import Glibc

extension Recording {
    /// The recording as JSON in the Trace Event Format, which Perfetto (ui.perfetto.dev), Chrome (about:tracing) and Speedscope
    /// read: a track for each thread, bodies as nested slices, arrows from where an operation was submitted to where it began.
    ///
    /// - Complexity: O(n log n) in the number of events; the text has about 150 bytes per event.
    /// - Source: Trace Event Format (Google, 2016).
    public func chromeTrace() -> String {
        var writer = TraceWriter(origin_ns: tracks.compactMap { $0.events.first?.time_ns }.min() ?? 0)
        writer.add(#""ph":"M","pid":\#(process),"name":"process_name","args":{"name":"schedulers"}"#)
        for track in tracks {
            writer.add(
                #""ph":"M","pid":\#(process),"tid":\#(track.thread),"name":"thread_name","args":{"name":\#(quoted(track.name))}"#
            )
        }
        for track in tracks { writer.add(track, until: end_ns) }
        for (number, handover) in handovers().enumerated() {
            writer.addArrow(
                number, from: self[handover.submitted], of: tracks[handover.submitted.track].thread,
                to: self[handover.begun], of: tracks[handover.begun.track].thread)
        }
        return writer.text()
    }

    private var end_ns: UInt64 { tracks.compactMap { $0.events.last?.time_ns }.max() ?? 0 }
}

private let process = getpid()

private struct TraceWriter {
    let origin_ns: UInt64
    private var lines: [String] = []

    init(origin_ns: UInt64) { self.origin_ns = origin_ns }

    mutating func add(_ fields: String) { lines.append("{\(fields)}") }

    mutating func add(_ track: Recording.Track, until end_ns: UInt64) {
        for slice in track.slices() {
            let name = name(of: slice, track)
            let arguments = slice.operation.map(arguments) ?? ""
            add(
                #""ph":"X","pid":\#(process),"tid":\#(track.thread),"ts":\#(time(slice.begin_ns)),"#
                    + #""dur":\#(microseconds((slice.end_ns ?? end_ns) - slice.begin_ns)),"name":\#(name)"#
                    + arguments)
        }
        for event in track.events {
            guard let name = event.label else { continue }
            let arguments = event.operation.map(arguments) ?? event.arguments
            // An arrow must begin in a slice, so a submission is drawn as one.
            let phase =
                event.kind == .submit || event.kind == .timer ? #""ph":"X","dur":0"# : #""ph":"i","s":"t""#
            add(
                #"\#(phase),"pid":\#(process),"tid":\#(track.thread),"ts":\#(time(event.time_ns)),"name":\#(name)\#(arguments)"#
            )
        }
    }

    mutating func addArrow(
        _ number: Int, from submitted: Recording.Event, of source: Int, to begun: Recording.Event,
        of target: Int
    ) {
        let common = #""pid":\#(process),"cat":"handover","name":"handover","id":\#(number)"#
        let start_ns = min(submitted.time_ns, begun.time_ns)
        add(#""ph":"s","tid":\#(source),"ts":\#(time(start_ns)),\#(common)"#)
        add(#""ph":"f","bp":"e","tid":\#(target),"ts":\#(time(begun.time_ns)),\#(common)"#)
    }

    /// The slice's name as JSON; a body's slice is named after its function or closure.
    private func name(of slice: Slice, _ track: Recording.Track) -> String {
        switch slice.kind {
        case .search: return #""search""#
        case .sleep: return #""sleep""#
        case .block: return #""blocked""#
        case .span:
            guard let event = slice.event.map({ track.events[$0] }) else { return #""span""# }
            return quoted(event.name + (event.detail == 0 ? "" : " #\(event.detail)"))
        case .body:
            return quoted(slice.operation.flatMap { $0.function } ?? "operation")
        }
    }

    private func arguments(of operation: Recording.Operation) -> String {
        let words = [operation.run, operation.context, operation.extra].map { "0x" + String($0, radix: 16) }
        return #","args":{"run":"\#(words[0])","context":"\#(words[1])","extra":"\#(words[2])"}"#
    }

    func text() -> String {
        #"{"displayTimeUnit":"ns","traceEvents":["# + "\n" + lines.joined(separator: ",\n") + "\n]}\n"
    }

    private func time(_ time_ns: UInt64) -> String { microseconds(time_ns - origin_ns) }

    /// With three decimals: the format's unit is microseconds.
    private func microseconds(_ time_ns: UInt64) -> String {
        let fraction = String(1_000 + time_ns % 1_000).dropFirst()
        return "\(time_ns / 1_000).\(fraction)"
    }
}

extension Recording.Event {
    /// The event's name as JSON; nil if the event begins or ends a slice.
    fileprivate var label: String? {
        switch kind {
        case .begin, .end, .search, .park, .unpark, .block, .unblock, .spanBegin, .spanEnd,
            .resume:
            nil
        case .refuse: #""refused""#
        case .cancel: #""cancelled""#
        case .replace: #""replaced""#
        case .submit, .timer, .steal, .wake: "\"\(kind)\""
        case .mark: quoted(name)
        }
    }

    fileprivate var arguments: String {
        switch kind {
        case .steal: #","args":{"operations":\#(number)}"#
        case .wake, .replace: #","args":{"worker":\#(number)}"#
        default: ""
        }
    }
}

/// The text as a JSON string.
private func quoted(_ text: String) -> String {
    var quoted = "\""
    for scalar in text.unicodeScalars {
        switch scalar {
        case "\"", "\\": quoted += "\\\(scalar)"
        case _ where scalar.value < 0x20:
            quoted += "\\u" + String(0x10000 + scalar.value, radix: 16).dropFirst()
        default: quoted.unicodeScalars.append(scalar)
        }
    }
    return quoted + "\""
}
