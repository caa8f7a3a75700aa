// FewestDepartures.swift - simplifies a failing schedule: first departures are left out, many at a time and then one by
// one (Zeller, Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002); then schedules with fewer departures
// are tried, because leaving out an early departure changes the meaning of the later ones.

extension Exploration {
    /// A failing schedule.
    private struct Candidate {
        var choices: ContiguousArray<UInt16>
        var reason: FailingSchedule.Reason
        var departures: Int { choices.count { $0 != 0 } }
    }

    /// The last schedule, which failed for that reason, reduced to as few departures as can be found.
    mutating func smallest(
        _ reason: FailingSchedule.Reason, _ verdict: () -> String?, _ body: @escaping Body
    ) -> FailingSchedule {
        var best = Candidate(choices: explorer.choices, reason: reason)
        let schedulesBefore = total + random
        if reason == .outside {
            return FailingSchedule(
                reason: reason, schedule: Schedule(choices: best.choices), steps: [],
                schedulesBefore: schedulesBefore)
        }
        while leaveOut(&best, verdict, body) {}
        searchBelow(&best, verdict, body)
        var playback = Playback(choices: best.choices)
        let again = self.reason(&playback, recording: true, verdict: verdict, body)
        if let again, again.isLike(best.reason) {
            best.reason = again
        } else {
            best.reason = .notRepeated("\(best.reason)")
        }
        return FailingSchedule(
            reason: best.reason, schedule: Schedule(choices: best.choices), steps: explorer.recorded,
            schedulesBefore: schedulesBefore)
    }

    /// Leaves out departures that are not needed: a half of them, a quarter, and so on.
    ///
    /// - Returns: whether any were left out.
    private mutating func leaveOut(
        _ best: inout Candidate, _ verdict: () -> String?, _ body: @escaping Body
    ) -> Bool {
        let before = best.departures
        var size = best.departures
        while size > 0 {
            var first = 0
            while first < best.departures {
                let places = best.choices.indices.filter { best.choices[$0] != 0 }
                var choices = best.choices
                for place in places[first..<min(first + size, places.count)] { choices[place] = 0 }
                if !take(&best, Playback(choices: choices), verdict, body) { first += size }
            }
            size /= 2
        }
        return best.departures < before
    }

    /// Tries some thousands of schedules with fewer departures.
    private mutating func searchBelow(
        _ best: inout Candidate, _ verdict: () -> String?, _ body: @escaping Body
    ) {
        var bound = 0
        while bound < min(best.departures, 4) {
            var search = BoundedSearch(bound: bound)
            for _ in 0..<2_000 {
                if take(&best, search.playback, verdict, body) || !search.advance(after: explorer) { break }
            }
            bound += 1
        }
    }

    /// Runs a schedule, and accepts it if it also fails, with fewer departures.
    private mutating func take(
        _ best: inout Candidate, _ playback: Playback, _ verdict: () -> String?, _ body: @escaping Body
    ) -> Bool {
        var playback = playback
        guard !Task.isCancelled, let reason = reason(&playback, verdict: verdict, body),
            reason.isLike(best.reason)
        else {
            return false
        }
        let found = Candidate(choices: explorer.choices, reason: reason)
        guard found.departures < best.departures else { return false }
        best = found
        return true
    }
}

extension FailingSchedule.Reason {
    /// Whether both reasons are of the same kind.
    fileprivate func isLike(_ other: Self) -> Bool {
        switch (self, other) {
        case (.failed, .failed), (.stuck, .stuck), (.endless, .endless): true
        default: false
        }
    }
}
