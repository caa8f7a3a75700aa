import Foundation

// The gate of the checks: versions of the core with one defect each, all of which some scenario has to find.

private let usage = """
    mutate: breaks the core in every way it knows, one at a time, and runs the explorer's scenarios against it.

      mutate list                  the mutants
      mutate run [OPTIONS]         exits with 1 when one survives that is not listed as equivalent

      --only TEXT    those whose names contain it; more than one are added up
      --shard I/N    the I-th of N parts, counted from 0
      --search       without trying first how each was found before (Mutants/kills.txt)
      --keep         writes there how each was found
      --skip-listed  without those that are listed as equivalent
      --near         only the scenarios of the mutant's own part
      --scenario ID  only that one, or those: which mutants do they find?
      --whole        all scenarios for each mutant, not only up to the first that finds it
      --bound N      changes of the running thread in a schedule (1)
      --random N     random schedules of a scenario beside those (200)
      --limit N      schedules of a scenario at most (4000); 0 for no limit
      --seconds N    for one mutant; more is a failure (1800)
      --jobs N       mutants at a time (as many as there are processors)
      --state FILE   what was found is kept there, and not done again
      --scratch DIR  where they are built (.build/mutants); two runs at a time need one each
      --json FILE    the matrix
      --table FILE   the matrix as Markdown
    """

private struct Options {
    var only: [String] = []
    var shard = (index: 0, count: 1)
    var effort = Effort(bound: 1, random: 200, limit: 4000, isWhole: false)
    var seconds = 1800
    var searches = false
    var keeps = false
    var skipsListed = false
    var jobs = ProcessInfo.processInfo.activeProcessorCount
    var state: String?
    var scratch = ".build/mutants"
    var json: String?
    var table: String?

    init(_ words: [String]) throws {
        var words = words[...]
        func value(of option: String) throws -> String {
            guard let value = words.popFirst() else { throw Failure("\(option) needs a value.") }
            return value
        }
        func number(of option: String) throws -> Int {
            let text = try value(of: option)
            guard let number = Int(text), number >= 0 else {
                throw Failure("\(option) needs a number, and '\(text)' is none.")
            }
            return number
        }
        while let option = words.popFirst() {
            switch option {
            case "--only": only.append(try value(of: option))
            case "--search": searches = true
            case "--keep": keeps = true
            case "--near": effort.isNear = true
            case "--scenario":
                effort.scenarios = (effort.scenarios ?? []) + [try value(of: option)]
                effort.isWhole = true
            case "--skip-listed": skipsListed = true
            case "--whole": effort.isWhole = true
            case "--bound": effort.bound = try number(of: option)
            case "--random": effort.random = try number(of: option)
            case "--limit": effort.limit = try number(of: option)
            case "--seconds": seconds = try number(of: option)
            case "--jobs": jobs = max(1, try number(of: option))
            case "--state": state = try value(of: option)
            case "--scratch": scratch = try value(of: option)
            case "--json": json = try value(of: option)
            case "--table": table = try value(of: option)
            case "--shard":
                let text = try value(of: option)
                let parts = text.split(separator: "/").compactMap { Int($0) }
                guard parts.count == 2, parts[0] >= 0, parts[0] < parts[1] else {
                    throw Failure("--shard needs I/N with I below N, and '\(text)' is none.")
                }
                shard = (parts[0], parts[1])
            default: throw Failure("'\(option)' is no option.")
            }
        }
    }

    var isPart: Bool { !only.isEmpty || shard.count > 1 }
}

@main
struct Mutate {
    /// The number of mutants when the gate was last reviewed: fewer are an error.
    static let least = 120

    static func main() {
        do {
            try main(Array(CommandLine.arguments.dropFirst()))
        } catch {
            FileHandle.standardError.write(Data("mutate: \(error)\n".utf8))
            exit(error is Failure ? 64 : 1)
        }
    }

    private static func main(_ words: [String]) throws {
        let here = URL(fileURLWithPath: FileManager.default.currentDirectoryPath)
        let roots = [here.appending(path: "Verification"), here]
        let isRoot = { (folder: URL) in
            FileManager.default.fileExists(atPath: folder.appending(path: "Mutants/by-hand.txt").path)
        }
        guard let root = roots.first(where: isRoot) else {
            throw Failure("run it in the folder of the repository, or in its folder Verification.")
        }
        switch words.first {
        case "list":
            for mutant in try mutants(in: root) { print(mutant.id) }
        case "run":
            exit(try run(Options(Array(words.dropFirst())), in: root) ? 0 : 1)
        case "--help":
            print(usage)
        default:
            throw Failure("list or run? 'mutate --help' says more.")
        }
    }

    private static func mutants(in root: URL) throws -> [Mutant] {
        let folder = root.appending(path: "CScheduler/src")
        // Not part of the explorer, which has its own port and grace periods, and queries nothing from the system.
        let others = [
            "grace_epochs.c", "grace_liburcu.c", "inspection.c", "internals.c", "port_shipping.c",
            "reclaim.c", "recorder.c", "sizing.c", "thread_state.c",
        ]
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            .filter { $0.hasSuffix(".c") && !others.contains($0) }.sorted()
        let byHand = try HandWritten.read(root.appending(path: "Mutants/by-hand.txt").path)
        let sources = try Dictionary(
            uniqueKeysWithValues: names.map {
                let text = try String(contentsOf: folder.appending(path: $0), encoding: .utf8)
                return ($0, CSource(name: $0, text: text))
            })
        let generated = names.flatMap { name in
            MutationOperator.all.flatMap { $0.mutants(of: sources[name]!) }
        }
        let written = try byHand.map { each in
            guard let source = sources[each.file] else {
                throw Failure("there is no \(each.file) for '\(each.name)'.")
            }
            return try each.mutant(of: source)
        }
        return (generated + written).numbered()
    }

    private static func run(_ options: Options, in root: URL) throws -> Bool {
        let everything = try mutants(in: root)
        let equivalents = try Equivalents(root.appending(path: "Mutants/equivalents.txt").path)
        let debts = try Debts(root.appending(path: "Mutants/debts.txt").path)
        let listed = debts.mutants.union(equivalents.reasons.keys)
        let wanted = everything.enumerated()
            .filter { $0.offset % options.shard.count == options.shard.index }.map(\.element)
            .filter { !options.skipsListed || !listed.contains($0.id) }
            .filter { mutant in options.only.isEmpty || options.only.contains { mutant.id.contains($0) } }
        let scratch = URL(fileURLWithPath: options.scratch, relativeTo: root)
        let laboratory = Laboratory(root: root, scratch: scratch)
        try laboratory.prepare()
        let baseline = try laboratory.buildBaseline()
        let scenarios = try check(baseline, in: laboratory, options)
        let list = root.appending(path: "Mutants/kills.txt").path
        var known = try KnownKills(list)
        let outcomes = try Trials(
            laboratory, known: options.searches ? nil : known, options.effort, seconds: options.seconds,
            state: options.state
        ).run(wanted, jobs: options.jobs)
        if options.keeps {
            known.update(with: outcomes, of: everything, onlyAdds: options.effort.scenarios != nil)
            try known.text.write(toFile: list, atomically: true, encoding: .utf8)
        }
        let matrix = Matrix(
            outcomes: outcomes, equivalents: equivalents, debts: debts,
            scenarios: options.effort.scenarios ?? scenarios,
            skipped: options.skipsListed ? everything.count { listed.contains($0.id) } : 0)
        if let path = options.json { try matrix.json.write(toFile: path, atomically: true, encoding: .utf8) }
        if let path = options.table {
            try matrix.table.write(toFile: path, atomically: true, encoding: .utf8)
        }
        print(matrix.summary)
        let gate = Gate(
            matrix: matrix, least: least, everything: Set(everything.map(\.id)), isPart: options.isPart)
        let objections = options.effort.scenarios == nil ? gate.objections : gate.idle
        for objection in objections { print("mutate: \(objection)") }
        return objections.isEmpty
    }

    /// The unmodified core must pass, or nothing can be concluded about its mutants. This is a brief check; deeper
    /// ones have a separate command.
    private static func check(_ baseline: URL, in laboratory: Laboratory, _ options: Options) throws
        -> [String]
    {
        var effort = options.effort.rounds[0]
        effort.isWhole = true
        let result = try laboratory.run(
            baseline.path, ["run"] + effort.arguments(jobs: options.jobs), seconds: 3600)
        guard result.status == 0 else { throw Failure("the core as it is fails:\n\(result.output)") }
        let list = try laboratory.run(baseline.path, ["list"], seconds: 60)
        return list.output.split(separator: "\n").compactMap {
            $0.split(separator: " ").first.map(String.init)
        }
    }
}
