/// The handover of an operation: where it was submitted, and where it began.
///
/// Submissions and starts with the same operation words are paired in order, the first with the first. If events were
/// lost, only those since the time from which all tracks are complete are paired.
package struct Handover: Sendable {
    package let submitted: Place
    package let begun: Place

    /// An event, identified by its track and its index there.
    package struct Place: Hashable, Sendable {
        package let track: Int
        package let event: Int
    }
}

extension Recording {
    /// All operations whose submission and start are both recorded, in the order of their starts.
    ///
    /// - Complexity: O(n log n) in the number of events.
    package func handovers() -> [Handover] {
        let since_ns = tracks.filter { $0.lost > 0 }.compactMap { $0.events.first?.time_ns }.max() ?? 0
        var ends: [(time_ns: UInt64, isBegin: Bool, place: Handover.Place)] = []
        for (track, events) in tracks.map(\.events).enumerated() {
            for (number, event) in events.enumerated() where event.time_ns >= since_ns {
                switch event.kind {
                case .submit, .timer, .begin, .cancel, .refuse:
                    let isBegin = event.kind != .submit && event.kind != .timer
                    ends.append((event.time_ns, isBegin, Handover.Place(track: track, event: number)))
                default: break
                }
            }
        }
        // At equal times submissions come first: their timestamps may be a little late.
        ends.sort { ($0.time_ns, $0.isBegin ? 1 : 0) < ($1.time_ns, $1.isBegin ? 1 : 0) }
        var waiting: [Operation: Waiting] = [:]
        var found: [Handover] = []
        for end in ends {
            let event = self[end.place]
            guard let operation = event.operation else { continue }
            if !end.isBegin {
                waiting[operation, default: Waiting()].places.append(end.place)
            } else if let submitted = waiting[operation]?.takeFirst(), event.kind == .begin {
                found.append(Handover(submitted: submitted, begun: end.place))
            }
        }
        return found
    }

    package subscript(place: Handover.Place) -> Event { tracks[place.track].events[place.event] }

    private struct Waiting {
        var places: [Handover.Place] = []
        var taken = 0

        mutating func takeFirst() -> Handover.Place? {
            guard taken < places.count else { return nil }
            defer { taken += 1 }
            return places[taken]
        }
    }
}
