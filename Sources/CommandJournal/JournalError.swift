// JournalError.swift - the errors that a journal throws.

/// Why a journal refused a call, or what it found wrong.
public enum JournalError: Error, CustomStringConvertible {
    /// Another journal, in this process or another one, has the file open.
    case inUse(path: String)
    /// No journal can be opened or created at the path: for example, the path names a folder, or a file that cannot be read.
    case cannotOpen(path: String, any Error)
    /// The file is not a journal. It was not changed.
    case notAJournal(path: String)
    /// The file was written by another version of this library. It was not changed.
    case schemaVersion(found: Int, expected: Int)
    /// A record other than the last one is not as it was written; or a record cannot be read. The file was not changed.
    case corrupt(path: String, sequence: Int64, reason: String)
    /// A command's type is not among those that the journal was given.
    case unknownType(String, sequence: Int64?)
    /// A record cannot be decoded into a command, an output or a proof.
    case undecodable(type: String, sequence: Int64, any Error)
    /// A record with the encoding of a command, or of its result, has more bytes than the file can hold in one record.
    case tooLarge(size: Int, limit: Int)
    /// The key has a zero character (U+0000). Nothing was done.
    case unusableKey(String)
    /// The key already names another piece of work.
    case keyConflict(String)
    /// The key names the same work in another run, so the command cannot be a member of this run.
    case keyTaken(String)
    /// Two commands of a run, or the run and one of them, have this key. Nothing was done.
    case keyTwice(String)
    /// The work with this key is in doubt, or its run is parked; see ``CommandJournal/recover(_:compensation:undecodable:deciding:)``.
    case keyInDoubt(String)
    /// The work with this key was tried and ended with this outcome; with the text of its error.
    case recorded(key: String, JournalOutcome, text: String)
    /// Runs of an earlier process have not ended: call ``CommandJournal/recover(_:compensation:undecodable:deciding:)`` first.
    case needsRecovery
    /// A recovery or a replay is in progress; or, for a replay, a run.
    case busy
    /// A command of the journal executes another command of the same journal inside itself.
    case reentrant
    /// A recovery did not complete. Its work up to then is recorded, and no later recovery reports it again. The second value is the
    /// reason.
    case recoveryStopped(CommandJournal.RecoveryReport, any Error)
    /// A command threw while being replayed.
    case replay(type: String, sequence: Int64, any Error)
    /// The file, or its log, was renamed, replaced or deleted while the journal was open. This process writes nothing more, and its
    /// last records may or may not be found.
    case fileReplaced(path: String)
    /// The journal was closed.
    case closed
    /// The journal could not be read or written. After a failed write this process writes nothing more; recovery finds the records
    /// that are in the file.
    case storage(any Error)

    /// A description of the error in a sentence.
    public var description: String {
        switch self {
        case .inUse(let path): "The journal \(path) is in use."
        case .cannotOpen(let path, let error): "The journal \(path) cannot be opened: \(error)."
        case .notAJournal(let path): "\(path) is not a journal."
        case .schemaVersion(let found, let expected):
            "The journal has version \(found), and this library reads version \(expected)."
        case .corrupt(let path, let sequence, let reason):
            "Record \(sequence) of the journal \(path) is corrupt: \(reason). Restore the file from a backup."
        case .unknownType(let name, let sequence?):
            "Record \(sequence) is of the type '\(name)', which was not passed to the journal."
        case .unknownType(let name, nil): "The journal was not given the type '\(name)'."
        case .undecodable(let type, let sequence, let error):
            "Record \(sequence), of the type '\(type)', cannot be decoded: \(textWithoutValues(of: error))."
        case .tooLarge(let size, let limit):
            "A record of \(size) bytes does not fit into the journal, which takes \(limit) at most: it was not written. "
                + "Keep large data elsewhere, and store its location in the command."
        case .unusableKey(let key): "The key \(key.debugDescription) contains the character U+0000."
        case .keyConflict(let key): "The key '\(key)' names another piece of work."
        case .keyTaken(let key): "The key '\(key)' belongs to another run."
        case .keyTwice(let key): "The key '\(key)' occurs twice in one run."
        case .keyInDoubt(let key): "Whether the work with the key '\(key)' was done is in doubt."
        case .recorded(let key, let outcome, let text):
            "The work with the key '\(key)' has already ended (\(outcome.rawValue)): \(text)"
        case .needsRecovery: "Runs of an earlier process have not ended: call recover first."
        case .busy: "The journal is being recovered or replayed, or its commands run, which a replay forbids."
        case .reentrant: "A command of the journal cannot execute another of its commands inside itself."
        case .recoveryStopped(let report, let error):
            "The recovery stopped after ending \(report.runs.count) runs; call recover again to continue: \(error)"
        case .replay(let type, let sequence, let error):
            "Record \(sequence), of the type '\(type)', could not be replayed: \(textOf(error))."
        case .fileReplaced(let path):
            "\(path) was renamed, replaced or deleted while its journal was open. "
                + "Put the file and its log back, and open the journal again."
        case .closed: "The journal was closed."
        case .storage(let error): "The journal could not be read or written: \(error)."
        }
    }
}

/// The text of a coding error, without the values that it names, which may be secret.
///
/// - Returns: for any other error, the name of its type.
func textWithoutValues(of error: any Error) -> String {
    func place(_ path: [any CodingKey]) -> String {
        if path.isEmpty { return "its top level" }
        let names = path.map { key in
            let mirror = Mirror(reflecting: key)
            // The name of a field in the program; other keys, for example of a dictionary, are values.
            let isField = mirror.displayStyle == .enum && mirror.children.isEmpty
            return isField ? key.stringValue : "…"
        }
        return "'\(names.joined(separator: "."))'"
    }
    switch error {
    case DecodingError.typeMismatch(let type, let context):
        return "\(place(context.codingPath)) is not of the type \(type)"
    case DecodingError.valueNotFound(let type, let context):
        return "\(place(context.codingPath)) has no value of the type \(type)"
    case DecodingError.keyNotFound(let key, let context):
        return "\(place(context.codingPath + [key])) is missing"
    case DecodingError.dataCorrupted(let context):
        return "\(place(context.codingPath)) has a value that cannot be used"
    case EncodingError.invalidValue(let value, let context):
        return
            "\(place(context.codingPath)), of the type \(type(of: value)), has a value that cannot be encoded"
    case let error as KeyChanged: return "\(error)"
    default: return "\(type(of: error))"
    }
}

extension JournalError {
    /// Whether the journal contains something that this program cannot read.
    var isUnreadable: Bool {
        switch self {
        case .unknownType, .undecodable: true
        default: false
        }
    }

    /// The error of a read of `store`.
    init(reading store: any JournalStore, _ error: any Error) {
        switch error {
        case let error as JournalError: self = error
        case let error as JournalCorruption:
            self = .corrupt(path: store.path, sequence: error.sequence, reason: error.reason)
        default: self = .storage(error)
        }
    }
}
