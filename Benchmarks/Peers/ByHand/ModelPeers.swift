import BenchmarkCore
import Synchronization

/// A value under a mutex; each transaction keeps a copy of it.
final class SnapshotPeer: HandWrittenPeer {
    static let name = "snapshot"
    static let source = "Benchmarks/Peers/ByHand/ModelPeers.swift"

    static func form(_ workload: String) -> String? {
        workload.hasPrefix("W22-")
            ? "A struct under a mutex, copied before the changes and restored when they fail. No objects, hence no hooks or validation; no savepoints, no undo steps."
            : nil
    }

    init(threads: Int) {}

    func run(_ workload: String, n: Int) throws -> Sample {
        workload == "W22-readers"
            ? transactionsWithReaders(SharedPair.self, readers: n)
            : try runModel(SnapshotModel.self, workload, n: n)
    }
}

/// A class that keeps the values that it overwrites.
final class OldValuesPeer: HandWrittenPeer {
    static let name = "old-values"
    static let source = "Benchmarks/Peers/ByHand/ModelPeers.swift"

    static func form(_ workload: String) -> String? {
        workload.hasPrefix("W22-") && workload != "W22-readers"
            ? "A class with a dictionary of the values that it has overwritten. No tree, hence no hooks or validation of others; no check of who writes, no savepoints, no undo steps."
            : nil
    }

    init(threads: Int) {}

    func run(_ workload: String, n: Int) throws -> Sample {
        try runModel(OldValuesModel.self, workload, n: n)
    }
}

extension Peer {
    /// W22 with one form for keys and for members.
    func runModel<Form: ModelForm>(_ form: Form.Type, _ workload: String, n: Int) throws -> Sample {
        switch workload {
        case "W22-commit", "W22-rollback": transactions(form, workload, keys: n)
        case "W22-members": transactionsOfMembers(form, members: n)
        case "W22-threads": transactionsOnThreads(form, threads: n)
        default: throw PeerError("The peer '\(Self.name)' has no workload '\(workload)'.")
        }
    }
}

private final class SnapshotModel: ModelForm {
    private struct State {
        var values: [UInt64]
    }

    private let state: Mutex<State>

    init(keys: Int) { state = Mutex(State(values: (0..<keys).map { Workload.mark($0) })) }

    func transact(_ keys: ModelKeys, _ mark: UInt64, fails: Bool) {
        state.withLock { state in
            let before = state
            do {
                for turn in 0..<keys.count { state.values[keys[turn]] &+= mark }
                if fails { throw ModelFailure() }
            } catch {
                state = before
            }
        }
    }

    var values: [UInt64] { state.withLock { $0.values } }
}

private final class SharedPair: ViewForm, Sendable {
    private struct State {
        var first: UInt64
        var second: UInt64
    }

    private let state: Mutex<State>

    init(_ first: UInt64, _ second: UInt64) { state = Mutex(State(first: first, second: second)) }

    func transfer(_ amount: UInt64) {
        state.withLock { state in
            state.first &-= amount
            state.second &+= amount
        }
    }

    var reader: @Sendable () -> (UInt64, UInt64) { { self.state.withLock { ($0.first, $0.second) } } }
}

private final class OldValuesModel: ModelForm {
    private(set) var values: [UInt64]
    private var old: [Int: UInt64] = [:]

    init(keys: Int) { values = (0..<keys).map { Workload.mark($0) } }

    private subscript(key: Int) -> UInt64 {
        get { values[key] }
        set {
            if old[key] == nil { old[key] = values[key] }
            values[key] = newValue
        }
    }

    func transact(_ keys: ModelKeys, _ mark: UInt64, fails: Bool) {
        do {
            for turn in 0..<keys.count { self[keys[turn]] &+= mark }
            if fails { throw ModelFailure() }
        } catch {
            for (key, value) in old { values[key] = value }
        }
        old.removeAll(keepingCapacity: true)
    }
}
