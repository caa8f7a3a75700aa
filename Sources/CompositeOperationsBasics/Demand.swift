// Demand.swift - misuse stops the process with a message.

/// Stops the process with a message unless `condition` holds, in every build. (`precondition` prints no message
/// in release builds.)
@inlinable @inline(__always)
package func demand(
    _ condition: @autoclosure () -> Bool, _ sentence: @autoclosure () -> String, file: StaticString = #fileID,
    line: UInt = #line
) {
    if !condition() { fatalError(sentence(), file: file, line: line) }
}
