// Dump+JSON.swift - a dump as JSON. Of Foundation, imports only FoundationEssentials, which has the encoder.

internal import FoundationEssentials

extension Dump {
    /// The dump as JSON, which a `JSONDecoder` can decode; the keys are in alphabetical order.
    public var json: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        do {
            return String(decoding: try encoder.encode(self), as: UTF8.self)
        } catch {
            fatalError("Dump.json: a dump has only numbers that JSON can hold: \(error)")
        }
    }
}
