// Moments.swift - a mean and a mean deviation that forget: how long something takes, of late.
//
// Source: Jacobson and Karels, Congestion Avoidance and Control (1988), appendix A: the deviation is that of the mean's error.

/// The mean of what was measured, the latest an eighth of it, and the mean deviation from that.
struct Moments: Sendable {
    /// Nil: nothing was measured.
    private(set) var mean: Double?
    private(set) var deviation: Double = 0

    /// Of nothing.
    init() {}

    /// The estimate before anything is measured.
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
