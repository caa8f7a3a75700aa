import Glibc

/// Counterexamples of properties, kept in a folder from run to run. They are checked first, so a failure shows again at
/// once until it is fixed, whatever seed found it.
///
/// There is a file for each property, with a line for each counterexample, newest first: the number of runs in which the
/// property has held for it since, and its tape. After ten such runs a counterexample is dropped; not sooner, because a
/// race does not show in every run. Files are replaced as a whole, so processes may share a folder; the last writer
/// wins.
///
/// Source: the example database of Hypothesis (MacIver, 2015).
public struct ExampleDatabase: Sendable {
    /// The number of counterexamples that are kept for a property.
    static let most = 10
    /// The number of runs in which a counterexample must hold before it is dropped.
    static let patience = 10

    /// The path of the folder, which is created when the first counterexample is kept.
    public let folder: String

    /// Creates a database in a folder, which need not exist.
    public init(folder: String) { self.folder = folder }

    /// The folder named by the environment variable `PROPERTY_EXAMPLES`; without it, `property-examples` next to the
    /// running program, so in the build folder; nil for `PROPERTY_EXAMPLES=off`.
    public static var ofProcess: ExampleDatabase? {
        switch getenv("PROPERTY_EXAMPLES").map({ String(cString: $0) }) {
        case "off": return nil
        case .some(let folder) where !folder.isEmpty: return ExampleDatabase(folder: folder)
        default:
            guard let program = target(of: "/proc/self/exe"), let slash = program.lastIndex(of: "/") else {
                return nil
            }
            return ExampleDatabase(folder: program[..<slash] + "/property-examples")
        }
    }

    /// The counterexamples of a property, newest first; invalid lines are skipped.
    public func tapes(of property: String) -> [Tape] { lines(of: property).map(\.tape) }

    /// Records the result of a run.
    ///
    /// - Parameters:
    ///   - counterexample: the shrunk counterexample of the run; nil if there was none.
    ///   - held: the tapes of ``tapes(of:)`` that were checked and held.
    /// - Throws: ``ExampleDatabaseError``, when the file cannot be written.
    public func note(_ counterexample: Tape?, held: [Tape], of property: String) throws {
        let known = lines(of: property)
        guard counterexample != nil || !known.isEmpty else { return }
        let held = Set(held)
        var lines = known.compactMap { line -> Line? in
            if line.tape == counterexample { return nil }
            let runs = line.runs + (held.contains(line.tape) ? 1 : 0)
            return runs < Self.patience ? Line(runs: runs, tape: line.tape) : nil
        }
        if let counterexample { lines.insert(Line(runs: 0, tape: counterexample), at: 0) }
        try write(lines.prefix(Self.most), of: property)
    }

    private struct Line {
        var runs: Int
        var tape: Tape

        /// The line in the file; a tape without choices is written as a dot.
        var text: String { "\(runs) \(tape.choices.isEmpty ? "." : tape.description)" }

        init(runs: Int, tape: Tape) {
            self.runs = runs
            self.tape = tape
        }

        init?(_ text: Substring) {
            let words = text.split(separator: " ")
            guard words.count == 2, let runs = Int(words[0]), runs >= 0, let tape = Tape(String(words[1]))
            else {
                return nil
            }
            self.init(runs: runs, tape: tape)
        }
    }

    private func path(of property: String) -> String { "\(folder)/\(fileName(of: property))" }

    /// The characters of the property's name that a file name may have, and a hash of the whole name.
    private func fileName(of property: String) -> String {
        let readable = property.suffix(80).map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "-" }
        let hash = property.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) {
            ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3
        }
        return String(readable) + "-" + String(hash, radix: 36)
    }

    private func lines(of property: String) -> [Line] {
        guard let file = fopen(path(of: property), "re") else { return [] }
        defer { fclose(file) }
        var lines: [Line] = []
        var buffer: UnsafeMutablePointer<CChar>?
        var capacity = 0
        defer { free(buffer) }
        while getline(&buffer, &capacity, file) >= 0, let buffer {
            let text = String(cString: buffer)
            if let line = Line(text.prefix { $0 != "\n" }) { lines.append(line) }
        }
        return lines
    }

    private func write(_ lines: ArraySlice<Line>, of property: String) throws {
        let path = path(of: property)
        if lines.isEmpty {
            guard unlink(path) == 0 || errno == ENOENT else {
                throw ExampleDatabaseError(path: path, code: errno)
            }
            return
        }
        _ = mkdir(folder, 0o777)
        let unfinished = "\(path).\(getpid()).\(UInt32.random(in: 0 ... .max))"
        guard let file = fopen(unfinished, "wxe") else {
            throw ExampleDatabaseError(path: unfinished, code: errno)
        }
        let text = lines.map { $0.text + "\n" }.joined()
        let isWritten = fputs(text, file) >= 0
        guard fclose(file) == 0, isWritten, rename(unfinished, path) == 0 else {
            let code = errno
            unlink(unfinished)
            throw ExampleDatabaseError(path: path, code: code)
        }
    }
}

/// A counterexample could not be stored.
public struct ExampleDatabaseError: Error, CustomStringConvertible {
    /// The file.
    public let path: String
    /// `errno`.
    public let code: Int32

    /// The file and the reason.
    public var description: String { "\(path) cannot be written: \(String(cString: strerror(code)))" }
}
