import Glibc

/// Writes to standard error, unbuffered.
public func writeToStandardError(_ text: String) {
    _ = write(STDERR_FILENO, text, text.utf8.count)
}

/// The current measurement, the completed share, and the remaining time: a line on standard error that is updated, or, if
/// that is not a terminal, a line every 15 seconds.
public final class Progress {
    private let isTerminal: Bool
    private let write: (String) -> Void
    private let now: () -> ContinuousClock.Instant
    private var last: ContinuousClock.Instant

    /// Creates a progress line.
    public convenience init() {
        self.init(isTerminal: isatty(STDERR_FILENO) == 1, write: writeToStandardError, now: { .now })
    }

    package init(
        isTerminal: Bool, write: @escaping (String) -> Void, now: @escaping () -> ContinuousClock.Instant
    ) {
        self.isTerminal = isTerminal
        self.write = write
        self.now = now
        last = now()
    }

    /// Shows the current measurement. The forecast is nil for work that does not belong to a unit.
    func show(_ forecast: Forecast?, _ what: String) {
        show(share: forecast?.share ?? 0, left_s: forecast?.left, what)
    }

    /// Shows the current work, when the remaining time is unknown.
    public func show(_ what: String) { show(line: what) }

    package func show(share: Double, left_s: Double?, _ what: String) {
        let percent = share.isNaN ? 0 : Int(min(max(share, 0), 1) * 100)
        let left = left_s.map { ", about \(Self.text(seconds: $0)) left" } ?? ""
        show(line: "\(percent) %\(left): \(what)")
    }

    private func show(line: String) {
        if !isTerminal {
            guard now() - last >= .seconds(15) else { return }
            last = now()
        }
        write(isTerminal ? "\r\u{1B}[K\(line)" : "benchmarks: \(line)\n")
    }

    private static func text(seconds: Double) -> String {
        let seconds = Int(min(max(seconds, 0), 1e6).rounded(.up))
        return seconds < 60 ? "\(seconds) s" : "\(seconds / 60) min \(seconds % 60) s"
    }

    /// Removes the line.
    public func end() {
        guard isTerminal else { return }
        write("\r\u{1B}[K")
    }
}
