import Glibc

/// Writes to standard error, unbuffered.
public func writeToStandardError(_ text: String) {
    _ = write(STDERR_FILENO, text, text.utf8.count)
}

/// One line on standard error that says what is being measured; nothing when that is no terminal.
public final class Progress {
    private let isTerminal = isatty(STDERR_FILENO) == 1

    /// Creates a progress line.
    public init() {}

    /// Replaces the line.
    public func show(_ text: String) {
        guard isTerminal else { return }
        writeToStandardError("\r\u{1B}[K\(text)")
    }

    /// Removes the line.
    public func end() {
        guard isTerminal else { return }
        writeToStandardError("\r\u{1B}[K")
    }
}
