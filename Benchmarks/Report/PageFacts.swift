import BenchmarkHarness

/// The facts about machine and build that are needed to read the numbers.
extension Page {
    /// The machine and the run in a line.
    var machineLine: String {
        let machine = document.machine
        let commit = (document.build["commit"] ?? "").split(separator: ",", maxSplits: 1)
        let isChanged = commit.count > 1 ? " with changes" : ""
        let parts = [
            machine["cpus"].map { "\($0) CPUs" }, machine["processor"],
            machine["virtual"] == "yes" ? "virtual machine" : nil,
            summary.restarts > 0 ? "\(summary.restarts) restart\(summary.restarts == 1 ? "" : "s")" : nil,
            commit.first.map { "commit \($0.prefix(10))\(isChanged)" }, String(document.date.prefix(10)),
        ]
        return parts.compactMap(\.self).joined(separator: ", ")
    }

    /// Ordered by likely interest; facts that this program does not know come last.
    var facts: [(name: String, value: String)] {
        let names = [
            ("processor", "processor"), ("cpus", "CPUs"), ("memory", "memory"), ("kernel", "kernel"),
            ("virtual", "virtual machine"), ("steal", "stolen by the hypervisor"),
            ("governor", "frequency governor"), ("quota", "CPU quota (µs per period)"),
            ("commit", "commit"), ("compiler", "compiler"), ("configuration", "configuration"),
            ("assertions", "assertions"), ("flags", "flags"), ("allocator", "allocator"),
            ("arguments", "arguments"),
        ]
        let known = document.machine.merging(document.build) { machine, _ in machine }
        let first = names.compactMap { key, name in known[key].map { (name: name, value: $0) } }
        let rest = known.keys.filter { key in !names.contains { $0.0 == key } }.sorted()
            .map { (name: $0, value: known[$0] ?? "") }
        let run = [
            (name: "date", value: document.date), (name: "seed", value: "\(document.seed)"),
            (name: "restarts", value: "\(summary.restarts)"),
        ]
        let peers = document.peers.map { peer in
            (name: "peer \(peer.name)", value: "\(peer.version), \(peer.threads) threads, \(peer.allocator)")
        }
        return run + first + rest + peers
    }

    /// The address of a file of the repository; nil if that is unknown.
    func link(to source: String?) -> String? {
        guard let source, let repository = document.build["repository"], repository.hasPrefix("https://"),
            let commit = document.build["commit"]?.prefix(while: \.isHexDigit), commit.count == 40
        else { return nil }
        return "\(repository)/blob/\(commit)/\(source)"
    }
}
