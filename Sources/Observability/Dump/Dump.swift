// Dump.swift - what is alive, as values.

/// Everything of the process that was alive when it was looked at. Its description is a text; ``json`` is the same for programs.
public struct Dump: Hashable, Sendable, Codable {
    /// A live object.
    public struct Node: Hashable, Sendable, Codable {
        /// How far below the root it is; 0: it is one. What follows with a greater depth is below it.
        public let depth: Int
        /// Its kind, in a word: `cascade`, `queue`.
        public let kind: String
        /// The name that its owner gave it; of an invoker, a command, a transaction: that of a type.
        public let name: String?
        /// Tells it apart from all others of the dump.
        public let id: String
        /// Where it is on its way: of an operation, its state.
        public let state: String
        /// For how many seconds it has been kept; of roots.
        public let age: Double?
        /// More that is known, in words.
        public let notes: [String]
        /// For what it waits.
        public let waitsFor: [Reason]
        /// How many are below it that are not in the dump, at least: some of them may have ended.
        public let omitted: Int

        /// Kind, name and id, as in `cascade "download" #3`.
        public var title: String {
            let name = name.map { " \"\($0)\"" } ?? ""
            return id.hasPrefix(kind) ? id + name : "\(kind)\(name) \(id)"
        }
    }

    /// Why a node does not go on.
    public struct Reason: Hashable, Sendable, Codable {
        /// As a sentence with `id` as its object: `depends on`.
        public let why: String
        /// Of the node that has to end, or to make room.
        public let id: String
    }

    /// Some roots, and what is below them.
    public struct Section: Hashable, Sendable, Codable {
        /// Each before those that are below it.
        public internal(set) var nodes: [Node] = []
        /// How many roots are not in the dump: about, as some of them may have gone.
        public internal(set) var omitted = 0
    }

    /// A thread or a task that waits for the end of an operation.
    public struct Wait: Hashable, Sendable, Codable {
        /// The operation whose block waits, or has made the task that does; nil: it is none, or not known.
        public let waiter: String?
        /// The kernel's number of a thread that is blocked; nil: a task waits.
        public let thread: Int?
        /// For whose end.
        public let id: String
        /// Whether it ends after some time, whatever comes.
        public let hasLimit: Bool
        /// For how many seconds it has waited.
        public let age: Double
    }

    /// Something that will not go on by itself, or may not.
    public struct Problem: Hashable, Sendable, Codable {
        /// The kind of problem.
        public enum Kind: String, Hashable, Sendable, Codable {
            /// Some wait for each other, all around.
            case cycle
            /// The block of an operation has returned without an end, and nothing has ended it since.
            case forgottenFinish
            /// A thread waits in a block, and can run nothing else meanwhile.
            case blockedThread
            /// A worker's thread is blocked in a body, whatever it waits for.
            case blockedWorker
        }

        /// The kind of problem.
        public let kind: Kind
        /// As a sentence, with the titles of those concerned.
        public let text: String
        /// The ids of those concerned; of a cycle each waits for the next, and the last for the first.
        public let ids: [String]
    }

    /// How many nodes a section has at most.
    public let limit: Int
    /// Whether what begins was kept: if not, nothing but schedulers is shown.
    public let isOn: Bool
    /// The problems, to be looked at first.
    public internal(set) var problems: [Problem] = []
    /// Trees of operations that have been started, and have not ended.
    public internal(set) var trees = Section()
    /// Queues, and below each those that came first, with their tickets.
    public internal(set) var queues = Section()
    /// Invokers, and below each some of its commands.
    public internal(set) var invokers = Section()
    /// Trees of transactable objects with an open transaction.
    public internal(set) var transactions = Section()
    /// Actions, and below each some of its executions.
    public internal(set) var actions = Section()
    /// Gates of admission, and below each some of its tenants.
    public internal(set) var gates = Section()
    /// The tasks and threads that wait for the end of an operation, the longest first.
    public internal(set) var waits: [Wait] = []
    /// How many waits are not in the dump.
    public internal(set) var omittedWaits = 0
    /// All schedulers, with their workers.
    public internal(set) var schedulers: [SchedulerState] = []

    init(limit: Int, isOn: Bool) {
        self.limit = limit
        self.isOn = isOn
    }
}
