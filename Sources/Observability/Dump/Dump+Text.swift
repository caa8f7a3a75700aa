// Dump+Text.swift - a dump as text: a line for each node, indented by its depth.

extension Dump: CustomStringConvertible {
    /// The problems first, then each section.
    public var description: String {
        var lines = Lines()
        lines.add(0, isOn ? "dump of what is alive" : "dump: no objects are kept; call Inspection.start()")
        lines.list("problems", problems) { $0.add(1, $1.text) }
        lines.list("trees", trees)
        lines.list("queues", queues)
        lines.list("invokers", invokers)
        lines.list("transactions", transactions)
        lines.list("actions", actions)
        lines.list("gates", gates)
        lines.list("waits", waits) { $0.add(1, $1.text) }
        if omittedWaits > 0 { lines.more(1, omittedWaits) }
        lines.list("schedulers", schedulers) { lines, scheduler in
            for line in scheduler.description.split(separator: "\n") { lines.add(1, String(line)) }
        }
        return lines.text
    }
}

extension Dump.Wait {
    var text: String {
        let who = thread.map { "thread \($0)" } ?? "a task"
        let whose = waiter.map { " of the block of \($0)" } ?? ""
        return "\(who)\(whose) waits for \(id), for \(age) s\(hasLimit ? ", with a limit" : "")"
    }
}

extension Dump.Node {
    var text: String {
        let reasons = waitsFor.map { "\($0.why) \($0.id)" }
        let age = age.map { ["for \($0) s"] } ?? []
        return "\(title): " + ([state] + notes + reasons + age).joined(separator: ", ")
    }
}

private struct Lines {
    private static let deepest = 32
    private var lines: [String] = []

    var text: String { lines.joined(separator: "\n") }

    mutating func add(_ depth: Int, _ text: String) {
        let text = Self.onOneLine(text)
        let indent = String(repeating: "  ", count: min(depth, Self.deepest))
        lines.append(depth > Self.deepest ? "\(indent)(level \(depth)) \(text)" : indent + text)
    }

    /// Escapes control characters, so a name cannot look like another line.
    private static func onOneLine(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: { $0.value < 0x20 }) else { return text }
        return text.unicodeScalars.map {
            $0.value < 0x20 ? "\\u{\(String($0.value, radix: 16))}" : String($0)
        }.joined()
    }

    mutating func more(_ depth: Int, _ count: Int) { add(depth, "… \(grouped(count)) more") }

    mutating func list<Element>(
        _ title: String, _ elements: [Element], _ body: (inout Lines, Element) -> Void
    ) {
        if elements.isEmpty { return }
        add(0, "\(title):")
        for element in elements { body(&self, element) }
    }

    mutating func list(_ title: String, _ section: Dump.Section) {
        if section.nodes.isEmpty, section.omitted == 0 { return }
        add(0, "\(title):")
        // The number of nodes left out below a node follows the nodes that are shown there.
        var open: [(depth: Int, omitted: Int)] = []
        func close(_ depth: Int, _ lines: inout Lines) {
            while let last = open.last, last.depth >= depth {
                if last.omitted > 0 { lines.more(last.depth + 2, last.omitted) }
                open.removeLast()
            }
        }
        for node in section.nodes {
            close(node.depth, &self)
            add(node.depth + 1, node.text)
            open.append((node.depth, node.omitted))
        }
        close(0, &self)
        if section.omitted > 0 { more(1, section.omitted) }
    }

    /// As in 990,000.
    private func grouped(_ number: Int) -> String {
        var digits = Array(String(number))
        var place = digits.count - 3
        while place > 0 {
            digits.insert(",", at: place)
            place -= 3
        }
        return String(digits)
    }
}
