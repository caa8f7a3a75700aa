// Dump+JSON.swift - a dump as JSON. Of Foundation only what encodes.

internal import FoundationEssentials

extension Dump {
    /// The dump in JSON, from which a `JSONDecoder` makes it again; the keys are in alphabetical order.
    public var json: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        do {
            return String(decoding: try encoder.encode(self), as: UTF8.self)
        } catch {
            fatalError("Dump.json: a dump has no number that JSON has not: \(error)")
        }
    }
}
