/// A failure of a benchmark run that its user can do something about: one sentence that names what is wrong.
public struct BenchmarkError: Error, CustomStringConvertible, Hashable {
    /// The sentence.
    public let description: String

    /// Creates an error from its sentence.
    public init(_ sentence: String) { description = sentence }
}
