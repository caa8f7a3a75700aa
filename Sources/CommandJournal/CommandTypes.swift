// CommandTypes.swift - which types of commands a journal knows, and what commands look like in it.

internal import Basics
internal import Commands
internal import Foundation

/// A command as it is written down.
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
}

/// The types that a journal was given, by their names.
struct CommandTypes: Sendable {
    private let types: [String: any JournaledCommand.Type]

    init(_ types: [any JournaledCommand.Type]) {
        var known: [String: any JournaledCommand.Type] = [:]
        for type in types {
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
            type: C.journalName, key: command.idempotencyKey, payload: try Self.encode(command))
    }

    /// - Parameter sequence: where it is, for errors.
    func read(_ type: String, _ payload: Data, at sequence: Int64) throws -> any JournaledCommand {
        guard let known = types[type] else { throw JournalError.unknownType(type, sequence: sequence) }
        func open<C: JournaledCommand>(_ type: C.Type) throws -> any JournaledCommand {
            try Self.decode(type, payload, C.journalName, sequence)
        }
        return try open(known)
    }

    /// The same bytes for the same value: what has no order of its own is sorted.
    static func encode(_ value: some Encodable) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return try encoder.encode(value)
    }

    static func decode<Value: Decodable>(
        _: Value.Type, _ data: Data, _ type: String, _ sequence: Int64
    ) throws -> Value {
        do { return try JSONDecoder().decode(Value.self, from: data) } catch {
            throw JournalError.undecodable(type: type, sequence: sequence, error)
        }
    }
}
