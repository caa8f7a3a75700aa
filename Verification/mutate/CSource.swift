import Foundation

/// A C file, and the positions of its calls, statements and functions. Comments and strings are ignored.
struct CSource {
    let name: String
    let text: [UInt8]
    /// The text with blanks in place of comments, strings and preprocessor lines, so that offsets stay the same.
    let code: [UInt8]
    private var functions: [(name: String, range: Range<Int>)] = []

    init(name: String, text: String) {
        self.name = name
        self.text = Array(text.utf8)
        self.code = Self.blanked(self.text)
        self.functions = Self.functions(in: self)
    }

    func string(_ range: Range<Int>) -> String { String(decoding: text[range], as: UTF8.self) }

    /// The text of a range with whitespace collapsed: the name of a mutant, independent of line breaks.
    func oneLine(_ range: Range<Int>) -> String {
        string(range).split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }

    func replacing(_ range: Range<Int>, with replacement: String) -> String {
        string(0..<range.lowerBound) + replacement + string(range.upperBound..<text.count)
    }

    /// Every occurrence of the text.
    func ranges(of text: String) -> [Range<Int>] {
        let pattern = Array(text.utf8)
        return (0..<max(0, code.count - pattern.count + 1)).map { $0..<$0 + pattern.count }
            .filter { code[$0].elementsEqual(pattern) }
    }

    /// Every occurrence of the word, as a whole word.
    func words(_ word: String) -> [Range<Int>] {
        ranges(of: word).filter { !isWord(at: $0.lowerBound - 1) && !isWord(at: $0.upperBound) }
    }

    /// Every call of a function whose name satisfies `isNamed`: its name, and the range of the call.
    func calls(where isNamed: (String) -> Bool) -> [(name: String, range: Range<Int>)] {
        var found: [(String, Range<Int>)] = []
        var index = 0
        while index < code.count {
            guard isWord(at: index), !isWord(at: index - 1) else {
                index += 1
                continue
            }
            var end = index
            while isWord(at: end) { end += 1 }
            if end < code.count, code[end] == UInt8(ascii: "("), let close = closing(end) {
                let name = string(index..<end)
                if isNamed(name), function(at: index) != nil { found.append((name, index..<close + 1)) }
            }
            index = end
        }
        return found
    }

    /// The arguments of a call, without surrounding blanks.
    func arguments(of call: Range<Int>) -> [Range<Int>] {
        guard var start = code[call].firstIndex(of: UInt8(ascii: "(")) else { return [] }
        start += 1
        var found: [Range<Int>] = []
        var depth = 0
        for index in start..<call.upperBound {
            switch code[index] {
            case UInt8(ascii: "("), UInt8(ascii: "["), UInt8(ascii: "{"):
                depth += 1
            case UInt8(ascii: ","), UInt8(ascii: ")"):
                if depth == 0 {
                    found.append(trimmed(start..<index))
                    start = index + 1
                }
                if code[index] == UInt8(ascii: ")") { depth -= 1 }
            case UInt8(ascii: "]"), UInt8(ascii: "}"):
                depth -= 1
            default:
                break
            }
        }
        return found
    }

    /// The index of the parenthesis that closes the one at `open`.
    func closing(_ open: Int) -> Int? {
        var depth = 0
        for index in open..<code.count {
            if code[index] == UInt8(ascii: "(") { depth += 1 }
            if code[index] == UInt8(ascii: ")") {
                depth -= 1
                if depth == 0 { return index }
            }
        }
        return nil
    }

    /// The statement that consists of the range, with a cast to void before it and a semicolon after it; nil if
    /// there is none.
    func statement(of range: Range<Int>) -> Range<Int>? {
        let after = skippingBlanks(from: range.upperBound)
        guard after < code.count, code[after] == UInt8(ascii: ";") else { return nil }
        var before = range.lowerBound - 1
        while before >= 0, isBlank(at: before) { before -= 1 }
        let cast = Array("(void)".utf8)
        if before + 1 >= cast.count, code[before + 1 - cast.count...before].elementsEqual(cast) {
            before -= cast.count
            while before >= 0, isBlank(at: before) { before -= 1 }
        }
        guard before >= 0, [UInt8(ascii: ";"), UInt8(ascii: "{"), UInt8(ascii: "}")].contains(code[before])
        else { return nil }
        let first = skippingBlanks(from: before + 1)
        return first..<after + 1
    }

    /// The function that contains the offset.
    func function(at offset: Int) -> String? { functions.first { $0.range.contains(offset) }?.name }

    /// A function begins at the margin, and ends with a brace at the margin or at the end of its only line.
    private static func functions(in source: CSource) -> [(name: String, range: Range<Int>)] {
        let newline = UInt8(ascii: "\n")
        var found: [(String, Range<Int>)] = []
        var start = 0
        while start < source.code.count {
            let end = source.code[start...].firstIndex(of: newline) ?? source.code.count
            for open in start..<end
            where source.isWord(at: start) && source.code[open] == UInt8(ascii: "(") {
                guard let close = source.closing(open) else { continue }
                let brace = source.skippingBlanks(from: close + 1)
                guard brace < source.code.count, source.code[brace] == UInt8(ascii: "{") else { continue }
                var name = open
                while source.isWord(at: name - 1) { name -= 1 }
                var last = source.code[brace...].firstIndex(of: newline) ?? source.code.count
                if !source.code[brace..<last].contains(UInt8(ascii: "}")) {
                    while last + 1 < source.code.count, source.code[last + 1] != UInt8(ascii: "}") {
                        last = source.code[(last + 1)...].firstIndex(of: newline) ?? source.code.count
                    }
                }
                found.append((source.string(name..<open), brace..<min(last + 2, source.code.count)))
                break
            }
            start = end + 1
        }
        return found
    }

    func skippingBlanks(from index: Int) -> Int {
        var index = index
        while index < code.count, isBlank(at: index) { index += 1 }
        return index
    }

    private func trimmed(_ range: Range<Int>) -> Range<Int> {
        var (low, high) = (range.lowerBound, range.upperBound)
        while low < high, isBlank(at: low) { low += 1 }
        while low < high, isBlank(at: high - 1) { high -= 1 }
        return low..<high
    }

    private func isBlank(at index: Int) -> Bool {
        code[index] == UInt8(ascii: " ") || code[index] == UInt8(ascii: "\n")
    }

    private func isWord(at index: Int) -> Bool {
        guard code.indices.contains(index) else { return false }
        switch code[index] {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
            return true
        default:
            return false
        }
    }

    private static func blanked(_ text: [UInt8]) -> [UInt8] {
        var code = text
        var index = 0
        func blank(upTo end: Int) {
            for position in index..<min(end, text.count) where text[position] != UInt8(ascii: "\n") {
                code[position] = UInt8(ascii: " ")
            }
            index = end
        }
        func find(_ byte: UInt8, from start: Int) -> Int { text[start...].firstIndex(of: byte) ?? text.count }
        while index < text.count {
            let next = index + 1 < text.count ? text[index + 1] : 0
            switch text[index] {
            case UInt8(ascii: "/") where next == UInt8(ascii: "/"):
                blank(upTo: find(UInt8(ascii: "\n"), from: index))
            case UInt8(ascii: "#") where index == 0 || text[index - 1] == UInt8(ascii: "\n"):
                var end = find(UInt8(ascii: "\n"), from: index)
                while end < text.count, text[end - 1] == UInt8(ascii: "\\") {
                    end = find(UInt8(ascii: "\n"), from: end + 1)
                }
                blank(upTo: end)
            case UInt8(ascii: "\""):
                var end = index + 1
                while end < text.count, text[end] != UInt8(ascii: "\"") {
                    end += text[end] == UInt8(ascii: "\\") ? 2 : 1
                }
                blank(upTo: end + 1)
            default:
                index += 1
            }
        }
        return code
    }
}
