// Backoff.swift - the pauses between attempts.

/// The lengths of the pauses between attempts.
public enum Backoff: Sendable {
    /// No pause.
    case none
    /// Always the same.
    case constant(Duration)
    /// The first pause, then `factor` times the previous one, up to `limit`; each is shortened by a random
    /// fraction of up to `jitter`, which is 0 ... 1.
    case exponential(first: Duration, factor: Double, limit: Duration, jitter: Double)
    /// The pause after the attempt with this number, counted from 1.
    case custom(@Sendable (Int) -> Duration)

    /// Stops the process unless the numbers are valid; `user` begins the message.
    package func check(for user: String) {
        if case .exponential(_, let factor, _, let jitter) = self, !(factor >= 1 && (0...1).contains(jitter))
        {
            fatalError(
                "\(user): the factor is \(factor), and must be at least 1; the jitter is \(jitter), and must be within 0 ... 1"
            )
        }
    }

    /// The pause after an attempt.
    package func pause(after attempt: Int) -> Duration {
        switch self {
        case .none: return .zero
        case .constant(let pause): return max(pause, .zero)
        case .custom(let pause): return max(pause(attempt), .zero)
        case .exponential(let first, let factor, let limit, let jitter):
            var pause = first
            // Stops at the limit, beyond which the product may overflow a Duration.
            for _ in 1..<max(attempt, 1) where pause < limit {
                pause = pause > limit / factor ? limit : pause * factor
            }
            pause = max(.zero, min(pause, limit))
            return jitter == 0 ? pause : pause * (1 - Double.random(in: 0...jitter))
        }
    }
}
