// RecordedTimes.swift - times of the waits and runs that have ended since the last reading, from the recorder's events.

#if Ecosystem
    internal import Observability

    /// Times since the last reading; none while the recorder is off. Events that the recorder's rings have lost
    /// meanwhile are missing.
    struct RecordedTimes {
        private var seen_ns = Recorder.now_ns()

        /// - Complexity: O(n log n) in the number of events that are kept.
        mutating func next() -> (waits_ns: [Int64], runs_ns: [Int64]) {
            let since_ns = seen_ns
            seen_ns = Recorder.now_ns()
            guard Recorder.isOn else { return ([], []) }
            let new = (since_ns + 1)...max(seen_ns, since_ns + 1)
            let recording = Recorder.recording()
            let waits = recording.handovers().compactMap { handover -> Int64? in
                let (submitted, begun) = (
                    recording[handover.submitted].time_ns, recording[handover.begun].time_ns
                )
                return new.contains(begun) ? Int64(begun - min(begun, submitted)) : nil
            }
            let runs = recording.tracks.flatMap { track in
                track.bodies().compactMap { body -> Int64? in
                    guard let end_ns = body.end_ns, new.contains(end_ns) else { return nil }
                    return Int64(end_ns - min(end_ns, body.begin_ns))
                }
            }
            return (waits, runs)
        }
    }
#endif
