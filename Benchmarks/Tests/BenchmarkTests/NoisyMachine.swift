import BenchmarkComparison
import Foundation

/// Simulated time on a machine whose speed jumps by a factor of two, in phases of 0.1 to 10 s, and drifts; where work is
/// rarely interrupted, but then for any length of time; and whose processes differ.
struct NoisyMachine {
    private var random: Random
    private var slowness = 1.0
    private var drift = 0.0
    /// Seconds left until the speed changes.
    private var left = 0.0

    init(seed: UInt64) { random = Random(state: seed) }

    /// The logarithm of a new process's slowdown, for life, due to its memory layout. One in ten is an outlier.
    mutating func process() -> Double { random.normal() * (random.uniform() < 0.1 ? 0.03 : 0.01) }

    /// The seconds that pass while work is done that takes `seconds` when undisturbed.
    mutating func run(_ seconds: Double) -> Double {
        var work = seconds * (1 + 0.005 * abs(random.normal()))
        // A Pareto tail with an infinite variance.
        if random.uniform() < 0.05 { work += seconds * 0.02 * (pow(random.uniform(), -1 / 1.5) - 1) }
        var elapsed = 0.0
        while work > 1e-12 {
            if left < 1e-12 {
                left = 0.1 * pow(100, random.uniform())
                slowness = slowness == 1 ? 2 : 1
                drift += 0.005 * random.normal()
            }
            let speed = slowness * exp(drift)
            let now = min(work * speed, left)
            elapsed += now
            left -= now
            work -= now / speed
        }
        return elapsed
    }

    /// One restart of a row, as `SideBySide` measures it.
    ///
    /// - Parameters:
    ///   - seconds: how long a sample of BASE takes.
    ///   - again: the factor by which the second process of BASE takes longer.
    ///   - head: the same factor for HEAD.
    mutating func restart(_ seconds: Double, rounds: Int, again: Double = 1, head: Double = 1) -> Restart {
        let factors = [1, again, head].map { $0 * exp(process()) }
        var restart = Restart()
        for _ in 0..<rounds {
            var values = [0.0, 0, 0]
            for index in values.indices.shuffled(using: &random) {
                values[index] = run(seconds * factors[index])
            }
            restart.base.append(values[0])
            restart.again.append(values[1])
            restart.head.append(values[2])
        }
        return restart
    }

    /// A run of `ab` with rows whose samples take from 1 to 20 ms.
    mutating func trial(
        _ rule: GateRule, rows: Int = 20, head: (Int) -> Double = { _ in 1 },
        again: (Int) -> Double = { _ in 1 }
    ) -> Trial {
        let indices = Dictionary(
            uniqueKeysWithValues: (0..<rows).map { (Row(workload: "row \($0)", n: 1), $0) })
        var trial = Trial(
            rule, rows: indices.keys.sorted { indices[$0, default: 0] < indices[$1, default: 0] })
        while !trial.next.isEmpty {
            var values: [Row: Restart] = [:]
            for row in trial.next {
                let index = indices[row, default: 0]
                let seconds = 0.001 * pow(20, Double(index) / Double(max(1, rows - 1)))
                values[row] = restart(
                    seconds, rounds: rule.rounds(ofSample: seconds), again: again(index), head: head(index))
            }
            trial.add(values)
        }
        return trial
    }

    /// SplitMix64, and two distributions.
    private struct Random: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var z = state
            z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
            return z ^ (z >> 31)
        }

        /// Between 0 and 1, exclusive.
        mutating func uniform() -> Double { (Double(next() >> 12) + 0.5) * 0x1p-52 }

        /// Source: Box and Muller, A note on the generation of random normal deviates (1958).
        mutating func normal() -> Double { (-2 * log(uniform())).squareRoot() * cos(2 * .pi * uniform()) }
    }
}
