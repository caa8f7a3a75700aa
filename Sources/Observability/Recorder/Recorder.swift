internal import CInspection
internal import CScheduler
internal import Glibc

/// The last events of every thread that uses a scheduler: submissions, starts and ends, steals, sleeps.
///
/// The recorder is initially off; each event then costs a load and a branch. While it is on, an operation costs about 10 to 30 ns
/// more, and a fork that no other worker takes costs nothing more (`ours-recorded` in the benchmark). The newest events of a thread
/// replace its oldest ones; the number of lost events is reported.
///
/// ```swift
/// Recorder.start()
/// …
/// try Recorder.recording().chromeTrace().write(toFile: "trace.json", atomically: true, encoding: .utf8)
/// ```
///
/// The file opens in Perfetto (ui.perfetto.dev) and in Chrome (about:tracing).
public enum Recorder {
    /// Starts recording, in the whole process; no effect while it is on.
    ///
    /// `csched_recorder_start` does the same for programs in C, but records no named slices of operations.
    ///
    /// - Parameter eventsPerThread: how many events are kept per thread, 32 bytes each; rounded up to a power of two between 64 and
    ///   1,048,576. Threads that already have events keep their current capacity.
    public static func start(eventsPerThread: Int = 8_192) {
        precondition(
            eventsPerThread > 0,
            "The recorder cannot keep \(eventsPerThread) events of a thread: it must be at least one.")
        csched_recorder_start(UInt32(clamping: eventsPerThread))
        inspection_turn_records(true)
    }

    /// Stops recording. The recorded events remain, and can be read.
    public static func stop() {
        inspection_turn_records(false)
        csched_recorder_stop()
    }

    /// Whether events are recorded.
    public static var isOn: Bool { csched_recorder_is_on() }

    /// Records a custom event of the program on the track of the calling thread. Does nothing while the recorder is off.
    ///
    /// - Complexity: some 15 ns while it is on.
    public static func mark(_ name: StaticString) {
        guard isOn, name.hasPointerRepresentation else { return }
        csched_record(Recording.Kind.mark.rawValue, UInt64(UInt(bitPattern: name.utf8Start)), 0)
    }

    /// Calls a body, and records it as a slice on the track of the calling thread while the recorder is on.
    ///
    /// - Parameter number: distinguishes slices of the same name; 0: no number.
    /// - Throws: what `body` throws.
    /// - Complexity: some 25 ns while it is on.
    public static func span<Value: ~Copyable, Failure: Error>(
        _ name: StaticString, number: UInt64 = 0, _ body: () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        guard isOn, name.hasPointerRepresentation else { return try body() }
        let address = UInt64(UInt(bitPattern: name.utf8Start))
        csched_record(Recording.Kind.spanBegin.rawValue, address, number)
        defer { csched_record(Recording.Kind.spanEnd.rawValue, address, number) }
        return try body()
    }

    /// The events recorded so far, of all live threads and of about 60 that ended most recently. Recording continues meanwhile, and
    /// no events are removed.
    ///
    /// - Parameter last: how far back to go from now; nil: all events.
    /// - Complexity: O(events), and a copy of them.
    public static func recording(last: Duration? = nil) -> Recording {
        let since_ns = last.map { last in
            let (seconds, attoseconds) = max(.zero, min(last, .seconds(1_000_000_000))).components
            let last_ns = UInt64(seconds) * 1_000_000_000 + UInt64(attoseconds / 1_000_000_000)
            let now = now_ns()
            return now - min(now, last_ns)
        }
        let (all, isComplete) = tracks(of: 0)
        let tracks = since_ns.map { since_ns in all.compactMap { $0.since(since_ns) } } ?? all
        return Recording(
            tracks: tracks.sorted { ($0.name, $0.thread) < ($1.name, $1.thread) }, isComplete: isComplete)
    }

    /// - Parameter thread: the kernel's ID of a thread; 0: all threads.
    /// - Returns: the tracks, and whether there was memory for all of them.
    static func tracks(of thread: Int32) -> (tracks: [Recording.Track], areAll: Bool) {
        var tracks: [Recording.Track] = []
        let areAll = withUnsafeMutablePointer(to: &tracks) { tracks in
            csched_recorder_read(
                thread,
                { context, thread, events, count in
                    let tracks = context!.assumingMemoryBound(to: [Recording.Track].self)
                    tracks.pointee.append(
                        Recording.Track(
                            thread.pointee, UnsafeBufferPointer(start: events, count: count)))
                }, tracks)
        }
        return (tracks, areAll)
    }

    /// The current time on the clock of the events.
    package static func now_ns() -> UInt64 {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        return UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
    }
}
