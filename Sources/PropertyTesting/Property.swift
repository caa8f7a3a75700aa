/// How a property is checked.
public struct PropertyOptions: Sendable {
    /// The number of cases that must hold.
    public var cases: Int
    /// The seed of the first case.
    public var seed: UInt64
    /// A tape to play back in place of all cases.
    public var replay: Tape?
    /// How many times the property may be run while a counterexample is shrunk.
    public var shrinkLimit: Int
    /// Counterexamples of earlier runs, which are checked first. Tapes that the generator can no longer use are
    /// skipped.
    public var examples: [Tape]

    /// Creates options.
    public init(
        cases: Int = 100, seed: UInt64, replay: Tape? = nil, shrinkLimit: Int = 2_000, examples: [Tape] = []
    ) {
        self.cases = cases
        self.seed = seed
        self.replay = replay
        self.shrinkLimit = shrinkLimit
        self.examples = examples
    }
}

/// A case for which the property does not hold, shrunk as far as possible.
public struct Counterexample<Value>: CustomStringConvertible {
    /// The value.
    public let value: Value
    /// The property's reason.
    public let reason: String
    /// The choices that make the value.
    public let tape: Tape
    /// The seed of the run.
    public let seed: UInt64
    /// The number of cases that held before this one.
    public let casesBefore: Int
    /// The number of times a smaller case was found.
    public let shrinks: Int
    /// The tape of ``PropertyOptions/examples`` that did not hold; nil if the counterexample is new.
    public let example: Tape?

    /// The value, the reason, and the line that replays it.
    public var description: String {
        let origin = example == nil ? "after \(casesBefore) cases" : "of an earlier run"
        return """
            \(reason)
            counterexample (\(origin), \(shrinks) shrinks, seed \(seed)): \(value)
            replay with \(tape.replay)
            """
    }
}

/// The result of a check.
public enum PropertyOutcome<Value> {
    /// Every case held. `labels` counts the cases by label.
    case held(cases: Int, labels: [String: Int])
    /// A case did not hold.
    case failed(Counterexample<Value>)
    /// Too many cases were discarded: the generator, or a filter, is too narrow.
    case gaveUp(cases: Int, discarded: Int)
}

/// Checks that a property holds for the values of a generator, and shrinks a counterexample.
///
/// - Parameters:
///   - classify: returns the labels of a value, for coverage.
///   - property: returns nil if the property holds for the value; otherwise the reason why it does not.
/// - Complexity: at most `cases + shrinkLimit` runs of the property, and ten discarded cases for each case.
///
/// Isolation: the caller's; the property may share it. When an enclosing ``Watchdog`` fires, its report says how to
/// replay the case that hangs.
public nonisolated(nonsending) func check<Value>(
    _ generator: Generator<Value>, options: PropertyOptions, classify: (Value) -> [String] = { _ in [] },
    _ property: (Value) async -> String?
) async -> PropertyOutcome<Value> {
    let seed = options.seed
    return await Watchdog.noting({ "a property with PROPERTY_SEED=\(seed)" }) {
        await checkCases(generator, options: options, classify: classify, property)
    }
}

private nonisolated(nonsending) func checkCases<Value>(
    _ generator: Generator<Value>, options: PropertyOptions, classify: (Value) -> [String],
    _ property: (Value) async -> String?
) async -> PropertyOutcome<Value> {
    var labels: [String: Int] = [:]
    var held = 0
    var discarded = 0
    var random = SplitMix64(seed: options.seed)
    for example in options.replay == nil ? options.examples : [] {
        await Task.yield()
        var source = Source(replaying: example)
        guard let value = try? generator.value(from: &source),
            let reason = await runCase(value, source.tape, property)
        else { continue }
        let found = Shrinker.Candidate(value: value, reason: reason, tape: source.tape, spans: source.spans)
        return .failed(await smallest(found, generator, options, casesBefore: 0, example: example, property))
    }
    while held < (options.replay == nil ? options.cases : 1) {
        // A property that never suspends would keep its thread for all its cases, and there may be only two threads
        // for all tests.
        await Task.yield()
        var source = options.replay.map { Source(replaying: $0) } ?? Source(seed: random.next())
        guard let value = try? generator.value(from: &source) else {
            discarded += 1
            if discarded > 10 * options.cases || options.replay != nil {
                return .gaveUp(cases: held, discarded: discarded)
            }
            continue
        }
        for label in classify(value) { labels[label, default: 0] += 1 }
        if let reason = await runCase(value, source.tape, property) {
            let found = Shrinker.Candidate(
                value: value, reason: reason, tape: source.tape, spans: source.spans)
            return .failed(
                await smallest(found, generator, options, casesBefore: held, example: nil, property))
        }
        held += 1
    }
    return .held(cases: held, labels: labels)
}

private nonisolated(nonsending) func smallest<Value>(
    _ found: Shrinker<Value>.Candidate, _ generator: Generator<Value>, _ options: PropertyOptions,
    casesBefore: Int, example: Tape?, _ property: (Value) async -> String?
) async -> Counterexample<Value> {
    var shrinker = Shrinker(generator: generator, best: found, limit: options.shrinkLimit)
    await shrinker.run(property)
    return Counterexample(
        value: shrinker.best.value, reason: shrinker.best.reason, tape: shrinker.best.tape,
        seed: options.seed, casesBefore: casesBefore, shrinks: shrinker.shrinks, example: example)
}

/// Runs the property once. If it hangs, a watchdog reports the case.
nonisolated(nonsending) func runCase<Value>(
    _ value: Value, _ tape: Tape, _ property: (Value) async -> String?
) async -> String? {
    await Watchdog.noting({ "a case; replay it with \(tape.replay)" }) { await property(value) }
}
