/// Tests several hypotheses at several looks at growing data, so that the probability of any false rejection stays at
/// most `alpha`.
///
/// Each look has the same share of `alpha`, fixed beforehand, and is a step-down test by Holm in which earlier
/// rejections stay rejected. The proof: let m₀ of the m hypotheses be true. When the first of these is rejected, at
/// most m - m₀ others have been rejected, so its p-value is at most alpha / (looks · m₀) at that look. There are m₀ ·
/// looks such events, each with at most that probability. Abandoning a hypothesis early, for any reason, only removes
/// events.
///
/// Source: Holm, A simple sequentially rejective multiple test procedure (1979); Bonferroni over the looks is the
/// simplest of alpha spending functions (Lan and DeMets, 1983).
package struct SequentialHolm {
    private let perLook: Double
    /// The hypotheses that are rejected.
    package private(set) var rejected: Set<Int> = []
    private let count: Int

    /// Creates a test of `count` hypotheses.
    package init(alpha: Double, looks: Int, count: Int) {
        perLook = alpha / Double(looks)
        self.count = count
    }

    /// Performs one look.
    ///
    /// - Parameter p: the p-values of hypotheses that are neither rejected nor abandoned.
    package mutating func look(_ p: [Int: Double]) {
        for (hypothesis, value) in p.sorted(by: { $0.value < $1.value }) where !rejected.contains(hypothesis)
        {
            guard value <= perLook / Double(count - rejected.count) else { return }
            rejected.insert(hypothesis)
        }
    }
}
