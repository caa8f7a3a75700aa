// CheckLaw.swift - checks a law on a subject: first with its saboteur inserted, then without.

public import PropertyTesting

/// Options of a check.
public struct LawOptions: Sendable {
    /// The seed of the loads.
    public var seed: UInt64
    /// How many cases must hold; at least one.
    public var cases: Int
    /// The time after which no further case is begun, once one has held; nil: no limit. Shrinking may take as long again, or ten
    /// seconds if that is longer; the time to detect the saboteur is not limited.
    public var budget: Duration?
    /// The time limit for an event that must happen.
    public var limit: Duration
    /// The maximum number of cases that the law has to detect its saboteur.
    public var sabotagedCases: Int
    /// A case to replay in place of all others; it is not shrunk.
    public var replay: Tape?
    /// Whether a failing case is repeated until it fails with a trace, for up to two seconds.
    public var isDrawn = true

    /// Creates options.
    public init(
        seed: UInt64 = 1, cases: Int = 100, budget: Duration? = nil, limit: Duration = .seconds(10),
        sabotagedCases: Int = 200, replay: Tape? = nil
    ) {
        self.seed = seed
        self.cases = max(1, cases)
        self.budget = budget
        self.limit = limit
        self.sabotagedCases = sabotagedCases
        self.replay = replay
    }
}

/// The result of checking a law.
public enum Verdict: Sendable {
    /// The given number of cases held, and the saboteur was seen in the case `sabotageSeenIn`.
    case held(cases: Int, sabotageSeenIn: Int)
    /// A case did not hold.
    case violated(LawCounterexample)
    /// The saboteur was not seen, so the law proves nothing here.
    case blind(cases: Int)
    /// The subject does not claim the promise of the law.
    case notClaimed(Need)
    /// The law could not be checked: no instance could be created, or the task was cancelled.
    case failed(String)

    /// Whether the result shows no fault of the subject or the law.
    public var isGood: Bool {
        switch self {
        case .held, .notClaimed: true
        case .violated, .blind, .failed: false
        }
    }
}

extension Verdict: CustomStringConvertible {
    /// A description in words.
    public var description: String {
        switch self {
        case .held(let cases, let seenIn): "held in \(cases) cases; its saboteur was seen in case \(seenIn)"
        case .violated(let found): found.description
        case .blind(let cases): "in \(cases) cases its saboteur was not seen: the law proves nothing here"
        case .notClaimed(let need): "not claimed: \(need)"
        case .failed(let reason): "the law could not be checked: \(reason)"
        }
    }
}

/// A case in which a law does not hold.
public struct LawCounterexample: Sendable, CustomStringConvertible {
    /// The load of the case.
    public let load: Load
    /// The reason why the law does not hold.
    public let reason: String
    /// The choices that make the load.
    public let tape: Tape
    /// The number of cases that held before this one.
    public let casesBefore: Int
    /// Its events, in order; nil if the case held each time it was traced.
    public let trace: Trace?

    /// A description in words.
    public var description: String {
        "\(reason)\nafter \(casesBefore) cases; \(load); replay with \(tape)"
            + (trace.map { "\n\($0)" } ?? "")
    }
}

/// Checks a law on a subject: whether the law holds in each of a number of cases, and whether a violation would be detected.
///
/// Threads: each case has a dedicated thread, and the threads from which it submits. A case that hangs leaves them behind. A
/// cancelled task begins no further case: the verdict is ``Verdict/failed(_:)``.
public func check(_ law: Law, of subject: Subject, options: LawOptions = LawOptions()) async -> Verdict {
    do {
        let instance = try subject.make()
        defer { instance.end() }
        if let lack = law.lack(of: instance) { return .notClaimed(lack) }
    } catch {
        return .failed("no instance could be made: \(error)")
    }
    guard options.replay == nil else { return await checkCases(law, subject, options, seenIn: 0) }
    guard let seen = await sabotage(law, subject, options) else {
        if Task.isCancelled { return .failed("the task was cancelled") }
        return .blind(cases: options.sabotagedCases)
    }
    return await checkCases(law, subject, options, seenIn: seen)
}

/// - Returns: the number of the first case in which the law saw the saboteur; nil if there was none.
private func sabotage(_ law: Law, _ subject: Subject, _ options: LawOptions) async -> Int? {
    var random = SplitMix64(seed: options.seed)
    for number in 1...max(1, options.sabotagedCases) {
        if Task.isCancelled { break }
        var source = Source(seed: random.next())
        guard let load = try? Load.all.value(from: &source) else { continue }
        let acts = Acts()
        // Only the saboteur makes anything late here, so a short limit is enough.
        let limit = min(options.limit, .milliseconds(200))
        guard let violation = await run(law, subject, load, limit: limit, sabotagedBy: acts).violation,
            violation.isLate == law.isOfProgress, acts.count > 0
        else { continue }
        // On a machine that is slow at the moment, the law may see a violation without the saboteur, too.
        if await run(law, subject, load, limit: limit).violation == nil { return number }
    }
    return nil
}

private func checkCases(_ law: Law, _ subject: Subject, _ options: LawOptions, seenIn: Int) async -> Verdict {
    let end = options.budget.map { ContinuousClock.now + $0 }
    var (held, random) = (0, SplitMix64(seed: options.seed))
    // With a budget, runs a few cases at a time.
    repeat {
        let shrinking = Shrinking(limit: max(options.budget ?? .seconds(60), .seconds(10)))
        let cases = end == nil ? options.cases : min(options.cases - held, 8)
        let outcome = await check(
            Load.all,
            options: PropertyOptions(
                cases: max(1, cases), seed: random.next(), replay: options.replay,
                shrinkLimit: options.replay == nil ? 200 : 0)
        ) { load in
            if Task.isCancelled { return nil }
            return await shrinking.run(law, subject, load, limit: options.limit)
        }
        if Task.isCancelled { return .failed("the task was cancelled") }
        switch outcome {
        case .held(let cases, _), .gaveUp(let cases, _): held += cases
        case .failed(let found):
            return .violated(await counterexample(found, to: law, of: subject, casesBefore: held, options))
        }
    } while held < options.cases && end.map { ContinuousClock.now < $0 } ?? false
    return .held(cases: held, sabotageSeenIn: seenIn)
}

/// Runs the cases of a check. A case that fails only sometimes is repeated more often while it is shrunk, unless it is slow.
private final class Shrinking: Sendable {
    private let limit: Duration
    private let state = Locked((repetitions: 1, end: ContinuousClock.Instant?.none))

    init(limit: Duration) { self.limit = limit }

    func run(_ law: Law, _ subject: Subject, _ load: Load, limit: Duration) async -> String? {
        let (repetitions, end) = state.withLock { $0 }
        let began = ContinuousClock.now
        for _ in 0..<repetitions {
            if let end, ContinuousClock.now > end { return nil }
            let outcome = await ConformanceTesting.run(law, subject, load, limit: limit)
            guard let reason = outcome.violation?.reason else { continue }
            state.withLock { state in
                if ContinuousClock.now - began < .milliseconds(100) { state.repetitions = 200 }
                if state.end == nil { state.end = ContinuousClock.now + self.limit }
            }
            return reason
        }
        return nil
    }
}

/// The counterexample, with a trace if the case fails again while traced.
private func counterexample(
    _ found: Counterexample<Load>, to law: Law, of subject: Subject, casesBefore: Int, _ options: LawOptions
) async -> LawCounterexample {
    var trace: Trace?
    let end = ContinuousClock.now + .seconds(2)
    while options.isDrawn, trace == nil, ContinuousClock.now < end {
        let outcome = await run(law, subject, found.value, limit: options.limit, isTraced: true)
        if outcome.violation != nil { trace = outcome.trace }
    }
    return LawCounterexample(
        load: found.value, reason: found.reason, tape: found.tape,
        casesBefore: casesBefore + found.casesBefore, trace: trace)
}

/// Runs one case.
///
/// - Parameter acts: the acts of the law's saboteur, which intervenes; nil: without a saboteur.
/// - Returns: the violation, or nil if the law holds; and the trace of a violation, if requested.
private func run(
    _ law: Law, _ subject: Subject, _ load: Load, limit: Duration, isTraced: Bool = false,
    sabotagedBy acts: Acts? = nil
) async -> (violation: Violation?, trace: Trace?) {
    await withCheckedContinuation { continuation in
        let (isOver, isTold) = (Gate(), Locked(false))
        let tell: @Sendable (Violation?, Trace?) -> Void = { violation, trace in
            let isFirst = isTold.withLock { isTold in
                defer { isTold = true }
                return !isTold
            }
            if isFirst { continuation.resume(returning: (violation, trace)) }
            isOver.open()
        }
        start {
            start { runCase(law, subject, load, limit: limit, isTraced: isTraced, sabotagedBy: acts, tell) }
            // Waits of a law have separate limits; this limit is for its other calls.
            if !isOver.wait(timeout: limit * 6) {
                tell(Violation(reason: "a call had not returned after \(limit * 6)", isLate: true), nil)
            }
        }
    }
}

/// Runs a case on this thread.
private func runCase(
    _ law: Law, _ subject: Subject, _ load: Load, limit: Duration, isTraced: Bool, sabotagedBy acts: Acts?,
    _ tell: (Violation?, Trace?) -> Void
) {
    var instance: Instance
    do { instance = try subject.make() } catch {
        return tell(Violation(reason: "no instance could be made: \(error)"), nil)
    }
    if let acts { law.saboteur.change(&instance, acts) }
    let trial = Trial(instance, load, limit: limit, isTraced: isTraced)
    let outcome = Result { try law.ask(trial) }
    acts?.end()
    trial.end()
    switch outcome {
    case .success:
        instance.end()
        tell(nil, nil)
    case .failure(let error):
        // If something hangs, this may never return.
        start { [end = instance.end] in end() }
        tell(error as? Violation ?? Violation(reason: "\(error)"), trial.tracer.trace)
    }
}
