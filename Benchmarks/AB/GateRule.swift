import BenchmarkHarness
import Foundation

/// How `ab` decides, written down before anything is measured.
///
/// A restart is a set of three fresh processes: BASE, BASE again and HEAD. Each is asked in every round, in shuffled
/// order, so that all three are neighbours in time. The *change* of a restart is the median over its rounds of the
/// logarithm of HEAD over the geometric mean of both BASE: what the machine does to all of them cancels, and a
/// change of its speed in the middle of a round spoils one round only. The *control* is the same of BASE again over
/// BASE; for symmetrical noise both are uncorrelated, so a look at one does not favour the other.
///
/// Two passes keep the false alarms of many rows together below ``alpha``, without asking much of rows in which nothing
/// happens:
///
/// 1. *Screening*, ``screening`` restarts of all rows, rejects nothing. It only chooses: a row goes on whose median change
///    is above three quarters of the threshold, in either direction, or whose control is off.
/// 2. *Confirmation* measures these again, in fresh processes, and uses nothing of what chose them. A row is worse when
///    the sign test says that its median change is above the threshold: ``SequentialHolm`` over the rows that were
///    chosen and over the looks after ``looks`` restarts. A row that is shown to be below the threshold is let go.
///
/// Without the second pass Holm over all rows would need a p-value of 0.0002 for 50 rows: 13 restarts of each.
///
/// The null hypothesis is that the median change is *at most the threshold*, not that there is none: a program that is
/// laid out differently in memory differs by a percent, reproducibly, and no number of restarts makes that a loss.
public struct GateRule: Codable, Sendable, Hashable {
    /// The change that is tolerated: 0.02 is 2 %.
    public var threshold: Double
    /// The probability of any false alarm in a run.
    public var alpha: Double
    /// The restarts of the first pass.
    public var screening: Int
    /// After how many restarts the second pass looks.
    public var looks: [Int]
    /// The rounds of a restart are as many as take a process this long ...
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
    /// From where on a row of the first pass is looked at again.
    var suspicion: Double { margin * 0.75 }
    /// The change that matters: an interval that holds it is too wide. 5 %, when 2 % are tolerated.
    var resolution: Double { margin * 2.5 }
    /// The probability of an objection against any row, because BASE differs from itself by chance.
    static let alphaOfControls = 0.01

    /// The rounds of a row, of which a sample takes so many seconds.
    package func rounds(ofSample sample: Double) -> Int {
        let wanted = (seconds / max(sample, 1e-6)).rounded(.up)
        return Int(min(max(wanted, Double(rounds.lowerBound)), Double(rounds.upperBound)))
    }
}
