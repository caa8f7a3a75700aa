// Moments.swift - a decaying mean and mean deviation: how long something has taken recently.
//
// Source: Jacobson and Karels, Congestion Avoidance and Control (1988), appendix A: the deviation is that of the mean's error.

/// The mean of the measurements, in which the latest has a weight of an eighth, and the mean deviation from it.
struct Moments: Sendable {
    /// Nil: nothing was measured.
    private(set) var mean: Double?
    private(set) var deviation: Double = 0

    /// Begins without measurements.
    init() {}

    /// Begins with an estimate, before anything is measured.
    init(mean: Double, deviation: Double) {
        self.mean = mean
        self.deviation = deviation
    }

    mutating func add(_ value: Double) {
        guard let mean else {
            self.mean = value
            deviation = value / 2
            return
        }
        self.mean = mean + (value - mean) / 8
        deviation += (abs(value - mean) - deviation) / 4
    }
}
