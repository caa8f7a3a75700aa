// Law.swift - a sentence that holds for every scheduler which claims something, how that is asked, and how it is broken.

/// A sentence that holds for every scheduler which claims what the sentence is about.
///
/// Each law comes with a saboteur: code between the law and the subject that breaks the promise. A law that does not see
/// this on a subject says nothing about that subject.
public struct Law: Sendable {
    /// A letter for what it is about, and a number.
    public let id: String
    /// The promise.
    public let sentence: String
    /// The claims and the abilities that a subject must have.
    public let needs: [Need]
    /// How the promise is broken on purpose.
    public let saboteur: Saboteur
    /// Whether it promises that something comes. Such a law has to see its saboteur by something that does not come, any other
    /// law by something wrong: so neither is taken in by a machine that is slow.
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

    /// All laws, those about one thing together.
    public static let all: [Law] =
        closures + widths + orders + waits + suspensions + barriers + timers + loops + operations
        + cancellations + dependencies + tasks + lifetimes

    /// The first need of the law that an instance does not meet; nil: it meets all.
    func lack(of instance: Instance) -> Need? { needs.first { !$0.isMet(by: instance) } }
}

extension Law: CustomStringConvertible {
    /// Its id, and its sentence.
    public var description: String { "\(id): \(sentence)" }
}

/// A claim, or an ability, that a law is about.
public enum Need: Hashable, Sendable, CustomStringConvertible {
    /// A promise.
    case claim(Claim)
    /// ``Instance/width``, which is at least so much, and at most.
    case width(ClosedRange<Int>)
    /// The subject runs more than one closure at a time, as far as it says.
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

    /// In a word.
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

/// Stands between a law and a subject, and breaks a promise.
public struct Saboteur: Sendable {
    /// Its deed, as in "drops every third closure".
    public let name: String
    let change: @Sendable (inout Instance, Acts) -> Void

    init(_ name: String, _ change: @escaping @Sendable (inout Instance, Acts) -> Void) {
        self.name = name
        self.change = change
    }
}
