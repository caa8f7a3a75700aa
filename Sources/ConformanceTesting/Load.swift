// Load.swift - the load of a case: the numbers of threads and closures, and the work of the closures.

import PropertyTesting

/// The number of submissions in a case, the number of submitting threads, and the work of each closure.
public struct Load: Hashable, Sendable, CustomStringConvertible {
    /// The number of threads that submit concurrently.
    public let submitters: Int
    /// The number of closures that each of them submits.
    public let each: Int
    /// The maximum number of rounds of a loop that a closure runs.
    public let work: Int
    /// The seed of everything else in the case.
    public let mix: UInt64

    /// The total number of submissions.
    public var total: Int { submitters * each }

    /// The numbers of the closures that a thread submits.
    func numbers(of submitter: Int) -> Range<Int> { submitter * each..<(submitter + 1) * each }

    /// - Returns: a number below `bound`, always the same for the same `number`.
    func draw(_ number: Int, below bound: Int) -> Int {
        var random = SplitMix64(seed: mix &+ UInt64(truncatingIfNeeded: number) &* 0x9E37_79B9_7F4A_7C15)
        return Int(random.next() % UInt64(max(1, bound)))
    }

    /// Works for a while; the time differs from closure to closure.
    func spend(_ number: Int) {
        var sink = UInt64(0)
        for round in 0..<draw(number, below: work + 1) { sink = sink &* 31 &+ UInt64(round) }
        withExtendedLifetime(sink) {}
    }

    /// A description in words.
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
