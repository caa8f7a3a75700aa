import Foundation

/// A compiler did not finish, so nothing can be concluded about its input.
private struct CompilerTimeout: Error, CustomStringConvertible {
    let file: String
    let seconds: Int
    var description: String { "the compiler did not end within \(seconds) s: \(file)" }
}

/// Builds the explorer with a mutated core, and runs scenarios in it.
struct Laboratory {
    /// The folder of the package, to which all paths are relative.
    let root: URL
    let scratch: URL

    private static let flags = [
        "-std=gnu17", "-w", "-D_GNU_SOURCE", "-DCSCHED_PORT=\"port_explorer.h\"",
        "-ICExplorer/include", "-IExplorerLitmus/include",
        "-IExplorerScenarios/include",
        "-IExplorerScenarios", "-IExploredCore/include", "-include", "ExplorerScenarios/torn.h",
    ]

    /// Compiles the files that no mutant changes, and the unmodified core.
    func prepare() throws {
        try FileManager.default.createDirectory(at: scratch, withIntermediateDirectories: true)
        let folders = [
            "CExplorer", "CExplorer/command", "ExplorerLitmus", "ExplorerScenarios", "ExploredCore",
            "explore",
        ]
        for folder in folders {
            for file in try files(in: root.appending(path: folder)) {
                try compile(file, to: object(of: file, in: scratch))
            }
        }
    }

    private func files(in folder: URL) throws -> [URL] {
        try FileManager.default.contentsOfDirectory(
            at: folder.resolvingSymlinksInPath(), includingPropertiesForKeys: nil
        )
        .filter { $0.pathExtension == "c" }.sorted { $0.path < $1.path }
    }

    private func object(of file: URL, in folder: URL) -> URL {
        let parent = file.deletingLastPathComponent().lastPathComponent
        return folder.appending(path: "\(parent)-\(file.deletingPathExtension().lastPathComponent).o")
    }

    /// `mutated`: a folder that is searched for the core's sources first.
    private func compile(
        _ file: URL, mutated: URL? = nil, to object: URL, optimized isOptimized: Bool = true
    ) throws {
        let search = [mutated?.path, "CScheduler/src", "CScheduler/include"].compactMap { $0 }.map {
            "-I\($0)"
        }
        let seconds = 120
        let isCore = file.deletingLastPathComponent().lastPathComponent == "ExploredCore"
        let watched = isCore ? ["-fsanitize-coverage=func,trace-loads,trace-stores"] : []
        let result = try run(
            "clang",
            Self.flags + [isOptimized ? "-O2" : "-O0"] + watched + search + [
                "-c", file.path, "-o", object.path,
            ],
            seconds: seconds)
        guard result.status != nil else { throw CompilerTimeout(file: file.path, seconds: seconds) }
        guard result.status == 0 else { throw Failure(result.output) }
    }

    /// The explorer with the mutant, or nil if the mutant does not compile. If only a known schedule is run, optimising
    /// would take most of the time.
    func build(_ mutant: Mutant, as number: Int, optimized isOptimized: Bool) throws -> URL? {
        let folder = folder(of: number)
        try? FileManager.default.removeItem(at: folder)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try mutant.text.write(to: folder.appending(path: mutant.file), atomically: false, encoding: .utf8)
        let wrapper = root.appending(path: "ExploredCore/\(mutant.file)")
        let object = object(of: wrapper, in: folder)
        do {
            try compile(wrapper, mutated: folder, to: object, optimized: isOptimized)
        } catch is Failure {
            discard(number)
            return nil
        }
        let others = try baselineObjects().filter { $0.lastPathComponent != object.lastPathComponent }
        return try link(others + [object], in: folder)
    }

    private func folder(of number: Int) -> URL { scratch.appending(path: "mutant-\(number)") }

    private func baselineObjects() throws -> [URL] {
        try FileManager.default.contentsOfDirectory(at: scratch, includingPropertiesForKeys: nil)
            .filter { $0.pathExtension == "o" }
    }

    /// The explorer with the unmodified core.
    func buildBaseline() throws -> URL { try link(baselineObjects(), in: scratch) }

    private func link(_ objects: [URL], in folder: URL) throws -> URL {
        let program = folder.appending(path: "explore")
        let result = try run("clang", ["-o", program.path] + objects.map(\.path).sorted(), seconds: 120)
        guard result.status == 0 else { throw Failure(result.output) }
        return program
    }

    func discard(_ number: Int) {
        try? FileManager.default.removeItem(at: folder(of: number))
    }

    /// Runs a program. After `seconds` it is killed, and the status is nil.
    func run(_ program: String, _ arguments: [String], seconds: Int) throws -> (
        status: Int32?, output: String
    ) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["timeout", "-k", "5", "-s", "KILL", "\(seconds)", program] + arguments
        process.currentDirectoryURL = root
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        let wasKilled = process.terminationReason == .uncaughtSignal || process.terminationStatus == 137
        return (wasKilled ? nil : process.terminationStatus, String(decoding: output, as: UTF8.self))
    }
}
