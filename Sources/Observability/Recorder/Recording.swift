internal import CScheduler

/// The events of all threads, as ``Recorder/recording(last:)`` returns them.
public struct Recording: Sendable {
    /// The kind of event.
    public enum Kind: UInt32, Sendable, CaseIterable {
        /// An operation is being submitted to a scheduler.
        case submit = 1
        /// The operation was not accepted.
        case refuse
        /// Its body begins.
        case begin
        /// Its body has returned.
        case end
        /// The operation was cancelled by a shutdown.
        case cancel
        /// A worker has stolen operations from another worker.
        case steal
        /// A worker has nothing to do, and searches for operations.
        case search
        /// A worker goes to sleep.
        case park
        /// A worker has been woken.
        case unpark
        /// A thread wakes a sleeping worker.
        case wake
        /// The running body is about to block.
        case block
        /// The body continues.
        case unblock
        /// A worker that blocks is replaced by another worker.
        case replace
        /// The timer of an operation is due.
        case timer
        /// The recorder was restarted: slices that had begun before have no recorded end.
        case resume
        /// A custom event of the program: ``Recorder/mark(_:)``.
        case mark = 32
        /// A span begins: the block of an operation, or a custom span of the program.
        case spanBegin
        /// The span ends.
        case spanEnd
    }

    /// One event.
    public struct Event: Sendable {
        /// The kind of event.
        public let kind: Kind
        /// The time, in nanoseconds of the clock `CLOCK_MONOTONIC`, as precise as the processor's ticks allow.
        public let time_ns: UInt64
        /// The operation that the event concerns; nil: none.
        public let operation: Operation?
        /// For ``Kind/steal``, the number of operations; for ``Kind/wake`` and ``Kind/replace``, the worker; for marks and
        /// spans, the address of the name.
        public let number: UInt64
        /// For a span, a number that distinguishes it from others of its name (for an operation, the operation's number), or
        /// 0.
        public let detail: UInt64

        /// The name of a mark or span; otherwise empty.
        public var name: String {
            switch kind {
            // Names live as long as the process.
            case .mark, .spanBegin, .spanEnd:
                UnsafePointer<CChar>(bitPattern: UInt(number)).map { String(cString: $0) } ?? ""
            default: ""
            }
        }

        package init(
            _ kind: Kind, at time_ns: UInt64, operation: Operation? = nil, number: UInt64 = 0,
            detail: UInt64 = 0
        ) {
            self.kind = kind
            self.time_ns = time_ns
            self.operation = operation
            self.number = number
            self.detail = detail
        }

        init?(_ event: csched_recorded_event) {
            guard let kind = Kind(rawValue: event.kind) else { return nil }
            let isOfOperation = event.run != 0
            self.init(
                kind, at: event.at_ns,
                operation: isOfOperation
                    ? Operation(run: event.run, context: event.subject, extra: event.extra) : nil,
                number: isOfOperation ? 0 : event.subject, detail: isOfOperation ? 0 : event.extra)
        }
    }

    /// The words of an operation. They identify the operation while it is alive, if it holds any state.
    public struct Operation: Hashable, Sendable {
        /// The address of its function.
        public let run: UInt64
        /// Its first word; for a closure, the address of its code.
        public let context: UInt64
        /// Its second word; for a closure, its captured context.
        public let extra: UInt64

        /// The demangled name of the function or closure that it runs; nil: the function is not in the program's executable,
        /// or the program was stripped.
        public var function: String? {
            guard var name = Symbols.name(of: context) ?? Symbols.name(of: run) else { return nil }
            // The job of an object: the job's function is the second word.
            if name.contains("(runJob in ") { name = Symbols.name(of: extra) ?? name }
            return Self.known.first { name.contains($0.part) }?.name ?? name
        }

        /// Functions of this package that call code from elsewhere, by a part of their names.
        private static let known: [(part: String, name: String)] = [
            ("(runTaskJob in ", "job of a task"), ("(runLaneJob in ", "job of a task"),
            ("(runDefaultJob in ", "job of a task"),
            ("CompositeOperations.turnOfOperation ", "turn of an operation"),
        ]

        package init(run: UInt64, context: UInt64, extra: UInt64) {
            self.run = run
            self.context = context
            self.extra = extra
        }
    }

    /// The events of one thread.
    public struct Track: Sendable {
        /// The kernel's ID of the thread, as in `/proc/self/task`.
        public let thread: Int
        /// The thread's name.
        public let name: String
        /// The events, the oldest first.
        public let events: [Event]
        /// How many events of the thread were replaced by newer ones.
        public let lost: Int

        init(_ thread: csched_recorded_thread, _ events: UnsafeBufferPointer<csched_recorded_event>) {
            self.thread = Int(thread.kernel_id)
            name = withUnsafeBytes(of: thread.name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
            lost = Int(clamping: thread.lost)
            self.events = events.compactMap { Event($0) }
        }

        /// Its events since a time; nil: there are none.
        func since(_ time_ns: UInt64) -> Track? {
            let first = events.firstIndex { $0.time_ns >= time_ns } ?? events.endIndex
            return first == events.endIndex
                ? nil : Track(thread: thread, name: name, events: Array(events[first...]), lost: lost + first)
        }

        package init(thread: Int, name: String, events: [Event], lost: Int = 0) {
            self.thread = thread
            self.name = name
            self.events = events
            self.lost = lost
        }
    }

    /// One track for each thread that recorded an event, ordered by name.
    public let tracks: [Track]

    /// Whether there was memory for the tracks of all threads.
    public let isComplete: Bool

    package init(tracks: [Track], isComplete: Bool = true) {
        self.tracks = tracks
        self.isComplete = isComplete
    }
}
