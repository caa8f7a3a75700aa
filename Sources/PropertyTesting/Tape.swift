import CompositeOperationsBasics

/// The choices that a generator made, as bounded numbers: everything that is random about a value.
///
/// A generator is a function of a tape. So a value is shrunk by editing the tape and running the generator
/// again, which preserves every invariant that the generator establishes, even through
/// ``Generator/flatMap(_:)``. As text, a tape is a line that replays a counterexample.
///
/// Source: the idea is Hypothesis's (MacIver, Donaldson: Test-Case Reduction via Test-Case Generation, 2020).
public struct Tape: Hashable, Sendable, CustomStringConvertible {
    /// The choices, in the order in which they were made.
    public let choices: [UInt64]

    /// Creates a tape from choices.
    public init(_ choices: [UInt64]) { self.choices = choices }

    /// Parses the text that ``description`` returns; nil when `text` is not a tape.
    public init?(_ text: String) {
        var choices: [UInt64] = []
        for part in text.split(separator: ".") {
            guard let choice = UInt64(part, radix: 36) else { return nil }
            choices.append(choice)
        }
        self.choices = choices
    }

    /// The choices in base 36, separated by dots.
    public var description: String { choices.map { String($0, radix: 36) }.joined(separator: ".") }

    /// The environment setting that replays the tape; an empty variable would count as unset.
    var replay: String { "PROPERTY_REPLAY=\(choices.isEmpty ? "." : description)" }

    /// Whether this is the simpler of two tapes: shorter, or of the same length and smaller at the first
    /// difference.
    public func isSimpler(than other: Tape) -> Bool {
        if choices.count != other.choices.count { return choices.count < other.choices.count }
        return choices.lexicographicallyPrecedes(other.choices)
    }
}

/// The source of a generator's choices: chance, or a tape that is played back.
public struct Source: ~Copyable {
    private enum Origin {
        case chance(SplitMix64)
        case tape([UInt64])
        case remainders([UInt64])
    }

    private var origin: Origin
    private var made: [UInt64] = []
    private(set) var spans: [Range<Int>] = []

    /// Creates a source of random choices.
    public init(seed: UInt64) { origin = .chance(SplitMix64(seed: seed)) }

    /// Plays a tape back. After its end the simplest choice is made; a choice beyond its bound is lowered to
    /// the bound.
    public init(replaying tape: Tape) { origin = .tape(tape.choices) }

    /// Makes choices from numbers whose bounds were not known when they were drawn; after their end, the
    /// simplest choice is made.
    init(remainders numbers: [UInt64]) { origin = .remainders(numbers) }

    /// The choices so far.
    public var tape: Tape { Tape(made) }

    /// Makes one choice.
    ///
    /// - Parameter bound: at least 1. The choice 0 should mean the simplest value.
    public mutating func draw(below bound: UInt64) -> UInt64 {
        demand(bound > 0, "Source.draw: the bound must be at least 1")
        let choice: UInt64
        switch origin {
        case .chance(var random):
            choice = UInt64.random(in: 0..<bound, using: &random)
            origin = .chance(random)
        case .tape(let choices):
            choice = made.count < choices.count ? min(choices[made.count], bound - 1) : 0
        case .remainders(let numbers):
            choice = made.count < numbers.count ? numbers[made.count] % bound : 0
        }
        made.append(choice)
        return choice
    }

    /// Marks the choices that `body` makes as a unit, which the shrinker tries to remove as a whole.
    public mutating func span<Value>(_ body: (inout Source) throws -> Value) rethrows -> Value {
        let start = made.count
        let value = try body(&self)
        spans.append(start..<made.count)
        return value
    }
}

/// A small generator with one word of state (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
/// Generators, 2014).
public struct SplitMix64: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// Creates a generator that starts at a seed.
    public init(seed: UInt64) { state = seed }

    /// The next number.
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
