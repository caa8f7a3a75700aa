public import Testing

/// The promises of a library that a test checks, by their names in its documentation.
///
/// ```swift
/// @Test(.promises("G14")) func aCancelledChildIsNotStarted() { ... }
/// ```
///
/// The trait does not change the test: the source shows which tests check a promise.
public struct Promises: TestTrait, SuiteTrait {
    /// The names.
    public let names: [String]
}

extension Trait where Self == Promises {
    /// The test checks these promises.
    public static func promises(_ names: String...) -> Self { Promises(names: names) }
}
