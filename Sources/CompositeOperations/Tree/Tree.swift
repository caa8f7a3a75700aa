// Tree.swift - an operation, and what is below it, as text.

extension AnyOperation {
    /// It and everything below it, a line each, indented: what it is, its state, its attempt. A block that has
    /// returned without an end is marked: a forgotten `finish` is found here.
    ///
    /// - Complexity: O(registered descendants).
    public final var tree: String {
        let lines: [(depth: Int, operation: AnyOperation, text: String)] = look {
            var lines: [(Int, AnyOperation, String)] = []
            var walk = [(0, self)]
            while let (depth, operation) = walk.popLast() {
                var text = "\(operation.label), attempt \(operation.machine.attempt)"
                let machine = operation.machine
                if machine.phase == .executing, machine.isLive, !machine.isOut, !operation.isComposite {
                    text += ", its block has returned without an end"
                }
                lines.append((depth, operation, text))
                for child in (operation.composition?.children ?? []).reversed() {
                    walk.append((depth + 1, child))
                }
            }
            return lines
        }
        return lines.map { line in
            String(repeating: "  ", count: line.depth) + "\(line.operation): \(line.text)"
        }.joined(separator: "\n")
    }
}
