/// How many rounds a peer gets at one size in its next restart: few if the previous restarts agree.
///
/// The number of restarts is fixed, and each restart contributes one value, the median of its rounds' log ratios. The
/// interval of ``Estimate`` only needs each of these values to lie above the true median with probability ½, whatever the
/// earlier values were. A number of rounds that depends only on earlier restarts preserves this property, so the interval
/// has the same coverage as with all rounds. (Stopping *when the interval excludes 1* would not preserve it: that rule
/// tests the very values that form the interval, and stops once chance has moved them far enough.)
package enum Rounds {
    /// A spread of at most 5 % is narrow.
    static let narrow = 0.05
    /// A spread of at most a quarter of the values' distance from 1 is narrow too: no further round could reverse the
    /// verdict.
    static let far = 0.25

    /// - Parameters:
    ///   - logs: the log ratios of all rounds of the previous restarts.
    ///   - most: the number of rounds if the spread is not narrow.
    package static func count(after logs: [Double], most: Int) -> Int {
        guard logs.count >= 3, let least = logs.min(), let largest = logs.max() else { return most }
        let distance = least > 0 ? least : largest < 0 ? -largest : 0
        return largest - least <= max(narrow, far * distance) ? 1 : most
    }
}
