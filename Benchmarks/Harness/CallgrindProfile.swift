import Foundation

/// A profile by callgrind: the costs of each function without its callees, and how often each function was called.
///
/// The format is that of valgrind's manual, "Callgrind Format Specification". Lines `ob=` and `fn=` name the function
/// whose costs follow; `cob=`, `cfn=` and `calls=` say that the next line's costs are those of a callee. A name is
/// spelled out once, with a number, and later referred to by that number.
package struct CallgrindProfile {
    package struct Function: Hashable {
        /// The file name of the program or library.
        package let object: String
        /// The symbol; for a recursive call, without callgrind's suffix.
        package let name: String

        package init(object: String, name: String) {
            self.object = object
            self.name = name
        }
    }

    package struct Cost: Hashable {
        package var instructions = 0
        /// Instructions with the bus locked: all atomic read-modify-writes.
        package var atomics = 0
    }

    package private(set) var costs: [Function: Cost] = [:]
    /// Calls by callee, without those that an allocator makes.
    package private(set) var calls: [String: Int] = [:]

    package init() {}

    /// Adds the costs in a file.
    ///
    /// - Throws: ``BenchmarkError`` when the file is not a profile.
    package mutating func add(_ text: String) throws {
        var (objects, names): ([Substring: String], [Substring: String]) = ([:], [:])
        var (object, called) = ("", "")
        var function = Function(object: "", name: "")
        var isCall = false
        var hasEvents = false
        for line in text.utf8.split(separator: UInt8(ascii: "\n")) {
            let line = Substring(line)
            guard let first = line.utf8.first else { continue }
            switch first {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "-"),
                UInt8(ascii: "*"):
                // position, instructions, atomics; trailing zeros are omitted
                if isCall {
                    isCall = false
                    continue
                }
                let fields = line.utf8.split(separator: UInt8(ascii: " "))
                costs[function, default: Cost()].instructions += Self.number(fields, 1)
                costs[function, default: Cost()].atomics += Self.number(fields, 2)
            case UInt8(ascii: "o") where line.hasPrefix("ob="):
                object = Self.file(Self.resolve(line.dropFirst(3), &objects))
            case UInt8(ascii: "f") where line.hasPrefix("fn="):
                function = Function(
                    object: object, name: Self.symbol(Self.resolve(line.dropFirst(3), &names)))
            case UInt8(ascii: "c") where line.hasPrefix("cob="):
                _ = Self.resolve(line.dropFirst(4), &objects)  // a name may be introduced here
            case UInt8(ascii: "c") where line.hasPrefix("cfn="):
                called = Self.symbol(Self.resolve(line.dropFirst(4), &names))
            case UInt8(ascii: "c") where line.hasPrefix("calls="):
                isCall = true
                if CountCategory.isAllocator(object) { break }
                calls[called, default: 0] += Int(line.dropFirst(6).prefix { $0 != " " }) ?? 0
            case UInt8(ascii: "e") where line.hasPrefix("events:"):
                hasEvents = line.hasPrefix("events: Ir Ge")
            default: break
            }
        }
        if !hasEvents {
            throw BenchmarkError("callgrind wrote no counts of instructions and atomics.", kind: .notMeasured)
        }
    }

    private static func number(_ fields: [Substring.UTF8View.SubSequence], _ index: Int) -> Int {
        index < fields.count ? Int(Substring(fields[index])) ?? 0 : 0
    }

    /// A name, from "(7) name" or "(7)".
    private static func resolve(_ text: Substring, _ known: inout [Substring: String]) -> String {
        guard let end = text.utf8.firstIndex(of: UInt8(ascii: ")")) else { return String(text) }
        let number = text[..<end]
        let rest = text[text.index(after: end)...].drop { $0 == " " }
        if !rest.isEmpty { known[number] = String(rest) }
        return known[number] ?? ""
    }

    private static func file(_ path: String) -> String {
        path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[path.index(after: $0)...]) } ?? path
    }

    /// A symbol without the number of a recursion, "name'2".
    private static func symbol(_ name: String) -> String {
        guard let mark = name.utf8.lastIndex(of: UInt8(ascii: "'")),
            Int(name[name.index(after: mark)...]) != nil
        else { return name }
        return String(name[..<mark])
    }
}
