/// A failure of a benchmark run: one sentence that names the problem, and the exit status of the program.
public struct BenchmarkError: Error, CustomStringConvertible, Hashable {
    /// The kind of failure, as the exit status gives it.
    public enum Kind: Int32, Sendable {
        /// The arguments, or a file that they name.
        case usage = 64
        /// Something was not measured; completed measurements are kept.
        case notMeasured = 1
        /// A peer computed a wrong result: no figure of the run is valid.
        case wrongResult = 2
    }

    /// The sentence.
    public let description: String
    /// The kind.
    public let kind: Kind
    /// The exit status of the program.
    public var status: Int32 { kind.rawValue }

    /// Creates an error from its sentence.
    public init(_ sentence: String, kind: Kind = .usage) {
        description = sentence
        self.kind = kind
    }
}
