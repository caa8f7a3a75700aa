// Demand.swift - misuse stops the process.

/// Stops the process with a sentence unless `condition` holds. In every build: `precondition` says nothing when
/// it is built for release.
@inline(__always)
func demand(
    _ condition: @autoclosure () -> Bool, _ sentence: @autoclosure () -> String, file: StaticString = #fileID,
    line: UInt = #line
) {
    if !condition() { fatalError(sentence(), file: file, line: line) }
}
