internal import CScheduler

/// The work of a scheduler, and its backlog, at one moment.
public struct SchedulerState: Hashable, Sendable, Codable {
    /// The activity of a worker.
    public enum Activity: String, Hashable, Sendable, Codable {
        /// Running a body.
        case runs
        /// In a body that blocks: the body has declared so, or its thread sleeps in the kernel.
        case blocks
        /// Searching for the next operation.
        case searches
        /// Asleep, with nothing to do.
        case sleeps
        /// Kept to replace the next worker that blocks.
        case reserved
    }

    /// One worker.
    public struct Worker: Hashable, Sendable, Codable {
        /// Its index, which is also in the name of its thread.
        public let index: Int
        /// The kernel's ID of its thread; 0 until the thread has started.
        public let thread: Int
        /// Its activity.
        public let activity: Activity
        /// Whether it blocks, and another worker has taken its place.
        public let isReplaced: Bool
        /// Bodies that have returned on it.
        public let executed: Int
        /// Operations that it took from other workers.
        public let stolen: Int
        /// Times it went to sleep.
        public let parked: Int
        /// How many operations wait in its own queues.
        public let waiting: Int
        /// The body that it runs; nil: none, or the recorder is off. Set only in dumps.
        public internal(set) var body: Body?
        /// The stack of its thread; nil: not requested. Set only in dumps.
        public internal(set) var stack: ThreadStack?
    }

    /// The body that a worker runs.
    public struct Body: Hashable, Sendable, Codable, CustomStringConvertible {
        /// The function, or the closure; nil: the program was stripped.
        public let function: String?
        /// How many seconds it has run.
        public let age: Double

        /// A phrase, as in "closure #1 in load(), for 0.5 s".
        public var description: String { "\(function ?? "a body"), for \(age) s" }
    }

    /// Operations of a priority that wait for a worker.
    public struct Queue: Hashable, Sendable, Codable {
        /// `high`, `default` or `background`.
        public let priority: String
        /// How many wait now.
        public let waiting: Int
        /// How many were ever submitted.
        public let submitted: Int
    }

    /// Unique among the schedulers of the process.
    public let id: Int
    /// The prefix of its threads' names.
    public let name: String
    /// Whether it is suspended.
    public let isSuspended: Bool
    /// Whether it no longer accepts operations from outside.
    public let isClosing: Bool
    /// The operations that were submitted from outside and have yet to be taken by a worker, the most urgent first.
    public let queues: [Queue]
    /// Seconds until its timers are next checked, which is no later than the first is due; 0: now; nil: there are no timers.
    public let timersDueIn: Double?
    /// Its workers, including those that block and those in reserve.
    public internal(set) var workers: [Worker]

    /// The schedulers of the process, the newest first. They keep running meanwhile, so the figures are read at slightly
    /// different times.
    ///
    /// - Complexity: O(workers + threads that submit), about 10 µs per worker.
    public static func all() -> [SchedulerState] {
        var states: [SchedulerState] = []
        withUnsafeMutablePointer(to: &states) { states in
            csched_visit_schedulers(
                { context, scheduler in
                    let states = context!.assumingMemoryBound(to: [SchedulerState].self)
                    states.pointee.append(SchedulerState(scheduler))
                }, states)
        }
        return states
    }

    private init(_ scheduler: OpaquePointer) {
        var state = csched_scheduler_state()
        // The maximum number of workers, including replacements.
        let workers = [csched_worker_state](unsafeUninitializedCapacity: 1024) { buffer, count in
            csched_scheduler_inspect(scheduler, &state, buffer.baseAddress, UInt32(buffer.count))
            count = min(Int(state.threads), buffer.count)
        }
        id = Int(clamping: state.id)
        name = withUnsafeBytes(of: state.name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        isSuspended = state.suspended
        isClosing = state.closing
        queues = [
            Queue(priority: "high", waiting: state.waiting.1, submitted: state.appended.1),
            Queue(priority: "default", waiting: state.waiting.0, submitted: state.appended.0),
            Queue(priority: "background", waiting: state.waiting.2, submitted: state.appended.2),
        ]
        timersDueIn =
            state.next_wake_ns == .max
            ? nil : Double(state.next_wake_ns - min(state.next_wake_ns, Recorder.now_ns())) / 1e9
        self.workers = workers.map(Worker.init).sorted { $0.index < $1.index }
    }
}

extension SchedulerState.Worker {
    fileprivate init(_ state: csched_worker_state) {
        index = Int(state.index)
        thread = Int(state.kernel_id)
        activity =
            switch state.activity {
            case .runs: .runs
            case .blocks: .blocks
            case .searches: .searches
            case .sleeps: .sleeps
            case .reserved: .reserved
            @unknown default: .searches
            }
        isReplaced = state.replaced
        executed = Int(clamping: state.executed)
        stolen = Int(clamping: state.stolen)
        parked = Int(clamping: state.parked)
        waiting = Int(clamping: state.waiting.0 + state.waiting.1 + state.waiting.2)
    }
}

extension SchedulerState.Worker {
    var isInBody: Bool { activity == .runs || activity == .blocks }

    /// Adds the running body, as recorded.
    mutating func addBody() {
        guard isInBody, let track = Recorder.tracks(of: Int32(clamping: thread)).tracks.last,
            let slice = track.slices().last(where: { $0.kind == .body && $0.end_ns == nil })
        else { return }
        let now_ns = Recorder.now_ns()
        body = SchedulerState.Body(
            function: slice.operation?.function, age: Double(now_ns - min(now_ns, slice.begin_ns)) / 1e9)
    }
}

extension SchedulerState.Worker {
    /// Adds the stack of its thread, if it is in a body.
    mutating func addStack() { if isInBody { stack = ThreadStack(of: thread) } }
}

extension SchedulerState.Queue {
    fileprivate init(priority: String, waiting: UInt64, submitted: UInt64) {
        self.init(priority: priority, waiting: Int(clamping: waiting), submitted: Int(clamping: submitted))
    }
}

extension SchedulerState: CustomStringConvertible {
    /// A line for the scheduler, and one for each worker, with its stack below.
    public var description: String {
        let flags =
            (isSuspended ? ", suspended" : "") + (isClosing ? ", shutting down" : "")
            + (timersDueIn.map { ", its timers are due in \($0) s" } ?? "")
        let waiting = queues.filter { $0.waiting != 0 }.map { "\($0.waiting) of \($0.priority) priority" }
        let outside = waiting.isEmpty ? "nothing waits" : "\(waiting.joined(separator: ", ")) wait"
        let lines = workers.flatMap(\.lines).map { "  \($0)" }
        return (["scheduler '\(name)': \(outside)\(flags)"] + lines).joined(separator: "\n")
    }
}

extension SchedulerState.Worker {
    fileprivate var lines: [String] {
        var line = "worker \(index), thread \(thread): \(activity.rawValue)"
        if isReplaced { line += ", and another worker has its place" }
        line += ", \(executed) executed"
        if waiting != 0 { line += ", \(waiting) in its queues" }
        if let body { line += ", \(body)" }
        let stack = stack?.description.split(separator: "\n") ?? []
        return [line] + stack.map { "  \($0)" }
    }
}
