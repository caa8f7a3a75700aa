// Trace.swift - the events of a test case by thread, and their text table.

import Glibc
import PropertyTesting

/// The events of a case, in order: a column for each thread, a row for each event.
public struct Trace: Hashable, Sendable, CustomStringConvertible {
    /// Something that happened.
    public struct Event: Hashable, Sendable {
        /// The index of the thread's column.
        public let thread: Int
        /// The event's name, in a word or two.
        public let text: String
    }

    /// The names of the columns.
    public let threads: [String]
    /// The events, in order.
    public let events: [Event]

    /// The trace as a text table.
    public var description: String {
        let widths = threads.indices.map { column in
            events.filter { $0.thread == column }.map(\.text.count).reduce(threads[column].count, max)
        }
        func row(_ text: (Int) -> String) -> String {
            let cells = threads.indices.map { column in
                text(column) + String(repeating: " ", count: max(0, widths[column] - text(column).count))
            }
            var line = cells.joined(separator: " | ")
            while line.last == " " || line.last == "|" { line.removeLast() }
            return line
        }
        let lines =
            [row { threads[$0] }, widths.map { String(repeating: "-", count: $0) }.joined(separator: "-+-")]
            + events.map { event in row { $0 == event.thread ? event.text : "" } }
        return lines.joined(separator: "\n")
    }
}

/// Records a trace if it is on. It is optional because recording perturbs the timing of the case.
final class Tracer: Sendable {
    private struct State {
        var columns: [UInt: Int] = [:]
        var names: [String] = []
        var events: [Trace.Event] = []
    }

    private let state: Locked<State>?

    init(isOn: Bool) { state = isOn ? Locked(State()) : nil }

    /// Names the calling thread: its next event goes into a new column of that name.
    func name(_ name: String) {
        state?.withLock { state in
            // A new thread may reuse the `pthread_t` of a thread that has ended.
            state.columns[UInt(pthread_self())] = state.names.count
            state.names.append(name)
        }
    }

    func note(_ text: @autoclosure () -> String) {
        guard let state else { return }
        let (thread, text) = (UInt(pthread_self()), text())
        state.withLock { state in
            guard state.events.count < 200 else { return }
            let column =
                state.columns[thread]
                ?? {
                    state.columns[thread] = state.names.count
                    state.names.append("thread \(state.names.count + 1)")
                    return state.names.count - 1
                }()
            state.events.append(Trace.Event(thread: column, text: text))
        }
    }

    var trace: Trace? {
        state?.withLock { $0.events.isEmpty ? nil : Trace(threads: $0.names, events: $0.events) }
    }
}
