/// A stretch of time on the track of a thread, between two events.
package struct Slice: Sendable {
    package enum Kind: Sendable { case body, search, sleep, block, span }

    package let kind: Kind
    package let begin_ns: UInt64
    /// nil: the slice is still open where the recording ends.
    package var end_ns: UInt64?
    /// The index of the event that begins it; nil: that event was lost.
    package let event: Int?
    /// The operation, for a body.
    package let operation: Recording.Operation?
}

extension Recording.Track {
    /// The thread's slices, in the order of their starts; each is nested in the slices that had not
    /// ended by then.
    ///
    /// - Complexity: O(events).
    package func slices() -> [Slice] {
        var slices: [Slice] = []
        var open: [Int] = []

        func begin(_ kind: Slice.Kind, at number: Int) {
            open.append(slices.count)
            slices.append(
                Slice(
                    kind: kind, begin_ns: events[number].time_ns, end_ns: nil, event: number,
                    operation: events[number].operation))
        }
        // Ends a slice, and all open slices nested in it: their end events were lost, or their kind has none.
        func end(_ kind: Slice.Kind, operation: Recording.Operation?, at time_ns: UInt64) {
            let place = open.lastIndex { index in
                slices[index].kind == kind && (operation == nil || slices[index].operation == operation)
            }
            if let place {
                for index in open[place...] { slices[index].end_ns = time_ns }
                open.removeSubrange(place...)
            } else if kind == .body, open.isEmpty, let operation, let first = events.first {
                // The body had begun before the oldest recorded event.
                slices.append(
                    Slice(
                        kind: kind, begin_ns: first.time_ns, end_ns: time_ns, event: nil, operation: operation
                    ))
            }
        }

        func endAll(at time_ns: UInt64) {
            for index in open { slices[index].end_ns = time_ns }
            open = []
        }

        for (number, event) in events.enumerated() {
            switch event.kind {
            case .search, .park:
                // A worker does neither inside a body. If a body is open here, its end was not
                // recorded.
                endAll(at: event.time_ns)
                begin(event.kind == .park ? .sleep : .search, at: number)
            case .unpark: end(.sleep, operation: nil, at: event.time_ns)
            case .resume: endAll(at: event.time_ns)
            case .begin:
                end(.search, operation: nil, at: event.time_ns)
                begin(.body, at: number)
            case .end: end(.body, operation: event.operation, at: event.time_ns)
            case .block: begin(.block, at: number)
            case .unblock: end(.block, operation: nil, at: event.time_ns)
            case .spanBegin: begin(.span, at: number)
            case .spanEnd: end(.span, operation: nil, at: event.time_ns)
            case .submit, .refuse, .cancel, .steal, .wake, .replace, .timer, .mark: break
            }
        }
        return slices
    }

    /// The bodies of operations among ``slices()`` whose starts are recorded.
    package func bodies() -> [Slice] { slices().filter { $0.kind == .body && $0.event != nil } }
}
