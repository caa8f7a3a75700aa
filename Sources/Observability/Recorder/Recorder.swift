internal import CInspection
internal import CScheduler
internal import Glibc

/// The last events of every thread that has to do with schedulers: what was submitted, began and ended, was stolen, slept.
///
/// Off at first, and then each event costs a load and a branch. While on, an operation costs some 10 to 30 ns more, and a fork that
/// no other worker takes costs nothing more (`ours-recorded` in the benchmark). The newest events of a thread replace its oldest ones;
/// how many were lost is said.
///
/// ```swift
/// Recorder.start()
/// …
/// try Recorder.recording().chromeTrace().write(toFile: "trace.json", atomically: true, encoding: .utf8)
/// ```
///
/// The file opens in Perfetto (ui.perfetto.dev) and in Chrome (about:tracing).
public enum Recorder {
    /// Begins to record, in the whole process; nothing more where that is on.
    ///
    /// `csched_recorder_start` does the same for programs in C, and records no slices of operations with their names.
    ///
    /// - Parameter eventsPerThread: how many are kept of a thread, 32 bytes each: rounded up to a power of two between 64 and
    ///   1,048,576. Threads that have events already keep the room that they have.
    public static func start(eventsPerThread: Int = 8_192) {
        precondition(
            eventsPerThread > 0,
            "The recorder cannot keep \(eventsPerThread) events of a thread: at least one.")
        csched_recorder_start(UInt32(clamping: eventsPerThread))
        inspection_turn_records(true)
    }

    /// Stops recording. What there is stays, and can be read.
    public static func stop() {
        inspection_turn_records(false)
        csched_recorder_stop()
    }

    /// Whether events are recorded.
    public static var isOn: Bool { csched_recorder_is_on() }

    /// An event of the program's own, on the track of the calling thread. Nothing while the recorder is off.
    ///
    /// - Complexity: some 15 ns while it is on.
    public static func mark(_ name: StaticString) {
        guard isOn, name.hasPointerRepresentation else { return }
        csched_record(Recording.Kind.mark.rawValue, UInt64(UInt(bitPattern: name.utf8Start)), 0)
    }

    /// Calls a body, which is a slice on the track of the calling thread while the recorder is on.
    ///
    /// - Parameter number: tells slices of the same name apart; 0: nothing to tell.
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

    /// The events that there are now: of all threads that are alive, and of some 60 that ended last. Nothing stops meanwhile,
    /// and nothing is taken away.
    ///
    /// - Parameter last: of this time alone; nil: all that there are.
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

    /// - Parameter thread: the kernel's number of one; 0: all.
    /// - Returns: also whether there was memory for all.
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

    /// On the clock of the events.
    package static func now_ns() -> UInt64 {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        return UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
    }
}
