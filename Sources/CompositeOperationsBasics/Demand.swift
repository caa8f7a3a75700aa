// Demand.swift - how misuse ends: with a sentence.

/// Stops the process with a sentence unless `condition` holds. In every build: `precondition` says nothing when
/// it is built for release.
@inlinable @inline(__always)
package func demand(
    _ condition: @autoclosure () -> Bool, _ sentence: @autoclosure () -> String, file: StaticString = #fileID,
    line: UInt = #line
) {
    if !condition() { fatalError(sentence(), file: file, line: line) }
}
