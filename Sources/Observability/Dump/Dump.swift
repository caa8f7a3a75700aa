// Dump.swift - the live objects, as values.

/// All live objects of the process, each as it was when it was inspected. The description is a text for people; ``json`` is
/// the same for programs.
public struct Dump: Hashable, Sendable, Codable {
    /// A live object.
    public struct Node: Hashable, Sendable, Codable {
        /// How far below the root the node is; 0: it is a root. The nodes that follow it with a greater depth are below it.
        public let depth: Int
        /// Its kind, in one word: `cascade`, `queue`.
        public let kind: String
        /// The name that its owner gave it; for an invoker, a command or a transaction, the name of a type.
        public let name: String?
        /// Distinguishes it from all other nodes of the dump.
        public let id: String
        /// Its current state.
        public let state: String
        /// How many seconds ago it was registered; only for roots.
        public let age: Double?
        /// Further details, in words.
        public let notes: [String]
        /// The nodes that it waits for.
        public let waitsFor: [Reason]
        /// At least this many nodes below it are not in the dump; some of them may have ended.
        public let omitted: Int

        /// Kind, name and id, as in `cascade "download" #3`.
        public var title: String {
            let name = name.map { " \"\($0)\"" } ?? ""
            return id.hasPrefix(kind) ? id + name : "\(kind)\(name) \(id)"
        }
    }

    /// Why a node does not proceed.
    public struct Reason: Hashable, Sendable, Codable {
        /// A phrase that `id` completes: `depends on`.
        public let why: String
        /// The id of the node that must end, or make room.
        public let id: String
    }

    /// Some roots, and the nodes below them.
    public struct Section: Hashable, Sendable, Codable {
        /// The nodes, in pre-order: each precedes the nodes below it.
        public internal(set) var nodes: [Node] = []
        /// About how many roots are not in the dump; some of them may be gone.
        public internal(set) var omitted = 0
    }

    /// A thread or a task that waits for the end of an operation.
    public struct Wait: Hashable, Sendable, Codable {
        /// The operation whose block waits or created the waiting task; nil if there is none, or it is unknown.
        public let waiter: String?
        /// The kernel's ID of the blocked thread; nil: a task waits.
        public let thread: Int?
        /// The id of the operation whose end is awaited.
        public let id: String
        /// Whether the wait has a timeout.
        public let hasLimit: Bool
        /// For how many seconds the wait has lasted.
        public let age: Double
    }

    /// Something that will not, or may not, proceed by itself.
    public struct Problem: Hashable, Sendable, Codable {
        /// The kind of problem.
        public enum Kind: String, Hashable, Sendable, Codable {
            /// Nodes wait for each other in a cycle.
            case cycle
            /// The block of an operation has returned without ending it, and nothing has ended it since.
            case forgottenFinish
            /// A thread waits in a block, and can run nothing else meanwhile.
            case blockedThread
            /// A worker's thread is blocked in a body, for whatever reason.
            case blockedWorker
        }

        /// The kind of problem.
        public let kind: Kind
        /// A sentence, with the titles of the nodes concerned.
        public let text: String
        /// The ids of the nodes concerned; in a cycle, each waits for the next, and the last for the first.
        public let ids: [String]
    }

    /// The maximum number of nodes in a section.
    public let limit: Int
    /// Whether inspection was on; if not, only schedulers are shown.
    public let isOn: Bool
    /// The problems, which a reader should look at first.
    public internal(set) var problems: [Problem] = []
    /// Trees of operations that have been started, and have not ended.
    public internal(set) var trees = Section()
    /// Queues, and below each the tickets of the earliest operations.
    public internal(set) var queues = Section()
    /// Invokers, and below each some of its commands.
    public internal(set) var invokers = Section()
    /// Trees of transactable objects with an open transaction.
    public internal(set) var transactions = Section()
    /// Actions, and below each some of its executions.
    public internal(set) var actions = Section()
    /// Admission gates, and below each some of its tenants.
    public internal(set) var gates = Section()
    /// The tasks and threads that wait for the end of an operation, the longest wait first.
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
