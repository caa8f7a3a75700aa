import BenchmarkHarness
import Foundation

/// The decision rule of `ab`, fixed before anything is measured.
///
/// A restart is a set of three fresh processes: BASE, BASE again and HEAD. Each runs once in every round, in shuffled
/// order, so all three are measured close together in time. The *change* of a restart is the median over its rounds of the
/// logarithm of HEAD over the geometric mean of the two values of BASE. Effects of the machine on all three cancel, and a
/// change of its speed in the middle of a round spoils only that round. The *control* is the same figure for BASE again
/// over BASE. For symmetrical noise the two are uncorrelated, so testing one does not bias the other.
///
/// Two passes keep the probability of any false alarm over many rows below ``alpha``, while unchanged rows need few restarts:
///
/// 1. *Screening*, ``screening`` restarts of all rows, rejects nothing. It only selects: a row continues if its median
///    change is above three quarters of the threshold, in either direction, or if its control is off.
/// 2. *Confirmation* measures the selected rows again, in fresh processes, and uses none of the values that selected them.
///    A row is worse when the sign test shows that its median change is above the threshold, using ``SequentialHolm`` over
///    the selected rows and over the ``looks``. A row that is shown to be below the threshold is dropped.
///
/// Without the second pass, Holm over 50 rows would need a p-value of 0.0002, and so 13 restarts of each row.
///
/// The null hypothesis is that the median change is *at most the threshold*, not that it is zero. A different memory
/// layout alone makes a program reproducibly slower or faster by a percent, and no number of restarts makes that a loss.
public struct GateRule: Codable, Sendable, Hashable {
    /// The change that is tolerated: 0.02 is 2 %.
    public var threshold: Double
    /// The probability of any false alarm in a run.
    public var alpha: Double
    /// The restarts of the first pass.
    public var screening: Int
    /// The numbers of restarts after which the second pass tests its values.
    public var looks: [Int]
    /// The number of rounds of a restart is chosen so that a process runs this long ...
    public var seconds: Double
    /// ... but within these limits.
    public var rounds: ClosedRange<Int>

    /// Creates a rule.
    ///
    /// - Throws: ``BenchmarkError`` when the threshold or the probability makes no sense.
    public init(threshold: Double = 0.02, alpha: Double = 0.05) throws {
        guard threshold > 0, threshold < 1 else {
            throw BenchmarkError(
                "The threshold must be more than 0 and less than 1, not \(threshold); 0.02 is 2 %.")
        }
        guard alpha > 0, alpha <= 0.1 else {
            throw BenchmarkError("Alpha must be more than 0 and at most 0.1, not \(alpha).")
        }
        self.threshold = threshold
        self.alpha = alpha
        screening = 6
        looks = [10, 14, 20, 28, 40]
        seconds = 0.1
        rounds = 3...15
    }

    /// The threshold as a logarithm: a loss of 2 % and its reverse are equally far from 0.
    var margin: Double { log(1 + threshold) }
    /// The change above which the first pass selects a row.
    var suspicion: Double { margin * 0.75 }
    /// The change that matters: an interval that contains it is too wide. It is 5 % if 2 % is tolerated.
    var resolution: Double { margin * 2.5 }
    /// The probability that the control of any row is called off although BASE differs from itself only by chance.
    static let alphaOfControls = 0.01

    /// The rounds of a row whose samples take this many seconds.
    package func rounds(ofSample sample: Double) -> Int {
        let wanted = (seconds / max(sample, 1e-6)).rounded(.up)
        return Int(min(max(wanted, Double(rounds.lowerBound)), Double(rounds.upperBound)))
    }
}
