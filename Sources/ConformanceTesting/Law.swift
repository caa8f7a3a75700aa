// Law.swift - a promise that holds for every scheduler that claims it, how to check it, and how to break it.

/// A promise that holds for every scheduler that makes the claims the law needs.
///
/// Each law comes with a saboteur: code inserted between the law and its subject to break the promise. A law that does not
/// detect its saboteur on a subject proves nothing about that subject.
public struct Law: Sendable {
    /// A letter for the topic, and a number.
    public let id: String
    /// The promise.
    public let sentence: String
    /// The claims and abilities that a subject must have.
    public let needs: [Need]
    /// The saboteur, which breaks the promise on purpose.
    public let saboteur: Saboteur
    /// Whether this is a liveness law: it promises that something happens. A liveness law must detect its saboteur by a
    /// missing event, a safety law by a wrong event, so a slow machine misleads neither.
    let isOfProgress: Bool
    let ask: @Sendable (Trial) throws -> Void

    init(
        _ id: String, _ sentence: String, needs: [Need] = [], isOfProgress: Bool = false, saboteur: Saboteur,
        ask: @escaping @Sendable (Trial) throws -> Void
    ) {
        self.id = id
        self.sentence = sentence
        self.isOfProgress = isOfProgress
        self.needs = needs
        self.saboteur = saboteur
        self.ask = ask
    }

    /// All laws, grouped by topic.
    public static let all: [Law] =
        closures + widths + orders + waits + suspensions + barriers + timers + loops + operations
        + cancellations + dependencies + tasks + lifetimes

    /// The first need of the law that an instance does not meet; nil if it meets all.
    func lack(of instance: Instance) -> Need? { needs.first { !$0.isMet(by: instance) } }
}

extension Law: CustomStringConvertible {
    /// The ID and the sentence.
    public var description: String { "\(id): \(sentence)" }
}

/// A claim or an ability that a law needs.
public enum Need: Hashable, Sendable, CustomStringConvertible {
    /// The subject makes this promise.
    case claim(Claim)
    /// ``Instance/width``, within the given range.
    case width(ClosedRange<Int>)
    /// The subject does not declare that it runs only one closure at a time.
    case parallel
    /// ``Instance/drain``.
    case drain
    /// ``Instance/suspension``.
    case suspension
    /// ``Instance/barrier``.
    case barrier
    /// ``Instance/submitAfter``.
    case timers
    /// ``Instance/forEach``.
    case loops
    /// ``Instance/operation``.
    case operations
    /// ``Instance/taskExecutor``.
    case tasks
    /// ``Instance/isHere``.
    case knowsItself
    /// ``Instance/shutDown``.
    case shutdown

    func isMet(by instance: Instance) -> Bool {
        switch self {
        case .claim(let claim): instance.claims.contains(claim)
        case .width(let range): instance.width.map { range.contains($0) } ?? false
        case .parallel: instance.width != 1
        case .drain: instance.drain != nil
        case .suspension: instance.suspension != nil
        case .barrier: instance.barrier != nil
        case .timers: instance.submitAfter != nil
        case .loops: instance.forEach != nil
        case .operations: instance.operation != nil
        case .tasks: instance.taskExecutor != nil
        case .knowsItself: instance.isHere != nil
        case .shutdown: instance.shutDown != nil
        }
    }

    /// The need in a word.
    public var description: String {
        switch self {
        case .claim(let claim): claim.rawValue
        case .width(let range):
            range.upperBound == .max ? "width of \(range.lowerBound) or more" : "width of \(range.lowerBound)"
        case .parallel: "parallel"
        case .drain: "drain"
        case .suspension: "suspension"
        case .barrier: "barrier"
        case .timers: "timers"
        case .loops: "loops"
        case .operations: "operations"
        case .tasks: "tasks"
        case .knowsItself: "isHere"
        case .shutdown: "shutdown"
        }
    }
}

/// A layer between a law and its subject; the layer breaks the promise.
public struct Saboteur: Sendable {
    /// How it breaks the promise, for example "drops every third closure".
    public let name: String
    let change: @Sendable (inout Instance, Acts) -> Void

    init(_ name: String, _ change: @escaping @Sendable (inout Instance, Acts) -> Void) {
        self.name = name
        self.change = change
    }
}
