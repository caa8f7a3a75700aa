/// How many rounds a peer gets at one size in its next restart: few where the restarts before agree.
///
/// The number of restarts is fixed, and what a restart counts for is one value, the median of its rounds' log ratios. The
/// interval of ``Estimate`` needs of these values nothing but that each lies above the true median with probability ½,
/// whatever the ones before it were. A number of rounds that only depends on earlier restarts leaves that as it is:
/// the interval covers as much as with all rounds. (Stopping by *when the interval excludes 1* would not: that looks at the
/// values which the interval is made of, and ends where chance has led them far enough.)
package enum Rounds {
    /// Values that lie within 5 % of each other are narrow.
    static let narrow = 0.05
    /// So are some that lie closer to each other than a quarter of their distance from 1: no round could turn the verdict.
    static let far = 0.25

    /// - Parameters:
    ///   - logs: the log ratios of all rounds of the restarts before.
    ///   - most: the rounds of a row that is not narrow.
    package static func count(after logs: [Double], most: Int) -> Int {
        guard logs.count >= 3, let least = logs.min(), let largest = logs.max() else { return most }
        let distance = least > 0 ? least : largest < 0 ? -largest : 0
        return largest - least <= max(narrow, far * distance) ? 1 : most
    }
}
