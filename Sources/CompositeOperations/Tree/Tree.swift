// Tree.swift - an operation, and what is below it, as text.

extension AnyOperation {
    /// The operation and everything below it, a line each, indented: kind, state, attempt. A block that has returned
    /// without ending its operation is marked, which reveals a forgotten `finish`. Below the 32nd level a line names
    /// its level instead of being indented further.
    ///
    /// - Complexity: O(registered descendants).
    public final var tree: String {
        let lines: [(depth: Int, operation: AnyOperation, text: String)] = look {
            seeFailure()
            var lines: [(Int, AnyOperation, String)] = []
            let gateAboveIsOpen = isDropped ? true : parent?.gateIsOpen ?? true
            var walk = [(0, self, gateAboveIsOpen)]
            while let (depth, operation, gateAboveIsOpen) = walk.popLast() {
                let gateIsOpen = gateAboveIsOpen && !operation.machine.isGateClosed
                let state = operation.label(gateIsOpen: gateIsOpen)
                var text = "\(state), attempt \(operation.machine.attempt)"
                if operation.machine.awaitsItsEnd, !operation.isComposite {
                    text += ", its block has returned without an end"
                }
                lines.append((depth, operation, text))
                for child in (operation.composition?.childrenAsOperations() ?? []).reversed() {
                    walk.append((depth + 1, child, gateIsOpen))
                }
            }
            return lines
        }
        return lines.map { line in
            Self.indent(line.depth) + "\(line.operation): \(line.text)"
        }.joined(separator: "\n")
    }

    private static func indent(_ depth: Int) -> String {
        let deepest = 32
        let indent = String(repeating: "  ", count: min(depth, deepest))
        return depth > deepest ? indent + "(level \(depth)) " : indent
    }
}
