// Misuse ends the process with a sentence, also in a release build.

@inline(__always)
func demand(
    _ condition: @autoclosure () -> Bool, _ sentence: @autoclosure () -> String, file: StaticString = #fileID,
    line: UInt = #line
) {
    if !condition() { fatalError(sentence(), file: file, line: line) }
}
