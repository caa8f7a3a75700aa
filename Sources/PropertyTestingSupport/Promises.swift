public import Testing

/// The promises of a library that a test would see broken, by their names in its documentation.
///
/// ```swift
/// @Test(.promises("G14")) func aCancelledChildIsNotStarted() { ... }
/// ```
///
/// It changes nothing about the test: whoever asks which tests there are for a promise reads it in the source.
public struct Promises: TestTrait, SuiteTrait {
    /// The names.
    public let names: [String]
}

extension Trait where Self == Promises {
    /// The test would see these promises broken.
    public static func promises(_ names: String...) -> Self { Promises(names: names) }
}
