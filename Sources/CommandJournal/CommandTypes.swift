// CommandTypes.swift - the types of commands that a journal knows, and how it encodes commands.

internal import Commands
internal import CompositeOperationsBasics
internal import Foundation

/// A command as it is recorded.
struct WrittenCommand: Equatable, Sendable {
    let type: String
    let key: String?
    let payload: Data

    init(type: String, key: String?, payload: Data) {
        self.type = type
        self.key = key
        self.payload = payload
    }

    init(_ member: JournalMember) { self.init(type: member.type, key: member.key, payload: member.payload) }

    /// - Parameter accepted: the record of a member.
    init(_ accepted: JournalRecord) {
        self.init(type: accepted.type ?? "", key: accepted.key, payload: accepted.payload ?? Data())
    }
}

extension String {
    /// The same string in Normalization Form C, whose bytes are the same for all equal strings.
    ///
    /// Source: Unicode Standard Annex #15; text in this form keeps it in every later version of Unicode.
    var canonical: String { utf8.allSatisfy { $0 < 0x80 } ? self : precomposedStringWithCanonicalMapping }
}

/// A command whose key is not part of its encoding.
struct KeyChanged: Error, CustomStringConvertible {
    let recorded: String?
    let decoded: String?

    var description: String {
        func name(_ key: String?) -> String { key.map { "'\($0)'" } ?? "none" }
        return "its key was \(name(recorded)), and is now \(name(decoded))"
    }
}

/// The types that a journal was given, by their names.
struct CommandTypes: Sendable {
    private let types: [String: any JournaledCommand.Type]

    init(_ types: [any JournaledCommand.Type]) {
        var known: [String: any JournaledCommand.Type] = [:]
        for type in types {
            demand(
                !type.journalName.contains("\0"), "CommandJournal: the name of \(type) contains U+0000")
            let other = known.updateValue(type, forKey: type.journalName)
            demand(
                other == nil || other == type,
                "CommandJournal: two types are named '\(type.journalName)': \(type) and \(other!)")
        }
        self.types = known
    }

    func knows(_ name: String) -> Bool { types[name] != nil }

    func write<C: JournaledCommand>(_ command: C) throws -> WrittenCommand {
        guard let known = types[C.journalName], known == C.self else {
            throw JournalError.unknownType(C.journalName, sequence: nil)
        }
        return WrittenCommand(
            type: C.journalName, key: try Self.checked(command.idempotencyKey),
            payload: try Self.encode(command))
    }

    /// A key as it is recorded: equal strings have the same bytes there.
    ///
    /// SQLite's strings end at a zero character: the rest would be lost.
    static func checked(_ key: String?) throws -> String? {
        if let key, key.contains("\0") { throw JournalError.unusableKey(key) }
        return key?.canonical
    }

    /// - Parameter sequence: the number of its record, for errors.
    func read(_ written: WrittenCommand, at sequence: Int64) throws -> any JournaledCommand {
        guard let known = types[written.type] else {
            throw JournalError.unknownType(written.type, sequence: sequence)
        }
        func open<C: JournaledCommand>(_ type: C.Type) throws -> any JournaledCommand {
            try Self.decode(type, written.payload, C.journalName, sequence)
        }
        let command = try open(known)
        // With another key, its receiver would take it for another piece of work.
        let key = command.idempotencyKey
        guard key == written.key else {
            throw JournalError.undecodable(
                type: written.type, sequence: sequence, KeyChanged(recorded: written.key, decoded: key))
        }
        return command
    }

    /// Whether a member of a run is this command, as the program encodes it now; an earlier version may have
    /// encoded fewer fields.
    ///
    /// - Throws: ``JournalError/undecodable(type:sequence:_:)``, when the member is of the same type, but
    ///   cannot be compared.
    func isSame(_ member: JournalMember, as command: WrittenCommand) throws -> Bool {
        let recorded = WrittenCommand(member)
        if recorded == command { return true }
        guard recorded.type == command.type, recorded.key == command.key, let known = types[command.type]
        else { return false }
        func rewritten<C: JournaledCommand>(_ type: C.Type) throws -> Data {
            try Self.encode(Self.decode(type, recorded.payload, C.journalName, member.last))
        }
        // Compared as strings: a key is part of the payload, and may be in another Unicode form there.
        return String(decoding: try rewritten(known), as: UTF8.self)
            == String(decoding: command.payload, as: UTF8.self)
    }

    /// Encodes equal values into the same bytes: keys without an order are sorted.
    static func encode(_ value: some Encodable) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return try encoder.encode(value)
    }

    /// The output of a command that was done.
    static func output<C: JournaledCommand>(_: C.Type, of member: JournalMember) throws -> C.Output {
        try decode(C.Output.self, member.output ?? Data(), member.type, member.last)
    }

    static func decode<Value: Decodable>(
        _: Value.Type, _ data: Data, _ type: String, _ sequence: Int64
    ) throws -> Value {
        do { return try JSONDecoder().decode(Value.self, from: data) } catch {
            throw JournalError.undecodable(type: type, sequence: sequence, error)
        }
    }
}
