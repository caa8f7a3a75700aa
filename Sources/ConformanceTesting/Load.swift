// Load.swift - the load of a case: how many threads submit how many closures of which size.

import PropertyTesting

/// How much is submitted in a case, by how many threads, and how much work each closure is.
public struct Load: Hashable, Sendable, CustomStringConvertible {
    /// How many threads submit at the same time.
    public let submitters: Int
    /// How much each of them submits.
    public let each: Int
    /// How many rounds of a loop a closure runs at most.
    public let work: Int
    /// The seed of all else in the case.
    public let mix: UInt64

    /// How much is submitted in all.
    public var total: Int { submitters * each }

    /// The numbers of what a thread submits.
    func numbers(of submitter: Int) -> Range<Int> { submitter * each..<(submitter + 1) * each }

    /// - Returns: a number below `bound`, always the same for `number`.
    func draw(_ number: Int, below bound: Int) -> Int {
        var random = SplitMix64(seed: mix &+ UInt64(truncatingIfNeeded: number) &* 0x9E37_79B9_7F4A_7C15)
        return Int(random.next() % UInt64(max(1, bound)))
    }

    /// Works for a while, which differs from closure to closure.
    func spend(_ number: Int) {
        var sink = UInt64(0)
        for round in 0..<draw(number, below: work + 1) { sink = sink &* 31 &+ UInt64(round) }
        withExtendedLifetime(sink) {}
    }

    /// In words.
    public var description: String {
        "\(submitters) \(submitters == 1 ? "thread submits" : "threads submit") \(each) each, of up to \(work) rounds (mix \(mix))"
    }

    static var all: Generator<Load> {
        Generator { source in
            Load(
                submitters: 1 + Int(source.draw(below: 3)), each: 1 + Int(source.draw(below: 24)),
                work: [0, 20, 2_000, 20_000][Int(source.draw(below: 4))], mix: source.draw(below: 1_000))
        }
    }
}
