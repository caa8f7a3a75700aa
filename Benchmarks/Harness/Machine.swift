import Foundation
import Glibc

/// The facts about the machine and the build that are needed to read the numbers.
public enum Machine {
    /// The processor, its CPUs, the kernel, and whether it is a virtual machine.
    public static func description() -> [String: String] {
        let processor = text("/proc/cpuinfo")
        var name = utsname()
        uname(&name)
        let kernel = withUnsafeBytes(of: &name.release, text)
        return [
            "host": withUnsafeBytes(of: &name.nodename, text),
            "processor": value(of: "model name", in: processor) ?? "unknown",
            "cpus": "\(ProcessInfo.processInfo.activeProcessorCount)",
            "kernel": kernel,
            "virtual": processor.contains(" hypervisor") ? "yes" : "no",
            "memory": value(of: "MemTotal", in: text("/proc/meminfo")) ?? "unknown",
            "governor": line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") ?? "none",
            "quota": quota() ?? "none",
        ]
    }

    /// The commit, the compiler, the configuration, and whether assertions are on.
    public static func build() async -> [String: String] {
        var build = [
            "commit": await commit(),
            "compiler": await firstLine(of: "swift", "--version") ?? "unknown",
            "configuration": isDebug ? "debug: the numbers mean nothing" : "release",
            "assertions": isDebug ? "on" : "off",
            "allocator": allocator(),
        ]
        build["repository"] = await repository()
        return build
    }

    /// The public address of the sources: the address that the clone was made from, if it can be opened in a browser and
    /// contains no name or password.
    private static func repository() async -> String? {
        guard let address = await firstLine(of: "git", "-C", root.path, "remote", "get-url", "origin"),
            let parts = URLComponents(string: address), parts.scheme == "https", parts.user == nil,
            parts.password == nil, parts.query == nil
        else { return nil }
        return address.hasSuffix(".git") ? String(address.dropLast(4)) : address
    }

    /// jemalloc as configured in this process, including the settings of `allocator_options.c`.
    private static func allocator() -> String {
        typealias Control =
            @convention(c) (
                UnsafePointer<CChar>, UnsafeMutableRawPointer, UnsafeMutablePointer<Int>,
                UnsafeMutableRawPointer?, Int
            ) -> Int32
        // Looked up by name, because linking jemalloc would decide the allocator.
        guard let symbol = dlsym(nil, "mallctl") else { return "the system's" }
        let control = unsafeBitCast(symbol, to: Control.self)
        func value<Value: BitwiseCopyable>(_ name: String, _ initial: Value) -> Value? {
            var value = initial
            var size = MemoryLayout<Value>.size
            return control(name, &value, &size, nil, 0) == 0 ? value : nil
        }
        let version = value("version", UnsafePointer<CChar>?.none).flatMap { $0 }.map { String(cString: $0) }
        let options = ["lg_extent_max_active_fit", "oversize_threshold"].map { option in
            "\(option) \(value("opt.\(option)", 0).map { "\($0)" } ?? "unknown")"
        }
        return (["jemalloc \(version ?? "unknown")"] + options).joined(separator: ", ")
    }

    /// Whether this program was built without optimisation.
    public static var isDebug: Bool {
        #if DEBUG
            true
        #else
            false
        #endif
    }

    /// The ticks of CPU time that the hypervisor took away since the machine started, and all ticks.
    static func stolenTicks() -> (stolen: Double, all: Double) {
        let fields = text("/proc/stat").prefix { $0 != "\n" }.split(separator: " ").dropFirst().compactMap {
            Double($0)
        }
        return (fields.count > 7 ? fields[7] : 0, fields.reduce(0, +))
    }

    /// The current commit of the repository that this program was built in.
    private static func commit() async -> String {
        guard let commit = await firstLine(of: "git", "-C", root.path, "rev-parse", "HEAD") else {
            return "unknown"
        }
        let changes = await firstLine(
            of: "git", "-C", root.path, "status", "--porcelain", "--untracked-files=no")
        return changes == nil ? commit : "\(commit), with changes"
    }

    private static var root: URL {
        (0..<3).reduce(URL(fileURLWithPath: #filePath)) { path, _ in path.deletingLastPathComponent() }
    }

    /// The quota of this process's control group: microseconds of CPU time in a period, and the period.
    private static func quota() -> String? {
        let group = text("/proc/self/cgroup").split(separator: "\n").first { $0.hasPrefix("0::") }
        return line("/sys/fs/cgroup\(group?.dropFirst(3) ?? "")/cpu.max")
    }

    private static func line(_ path: String) -> String? {
        text(path).split(separator: "\n").first.map(String.init)
    }

    private static func text(_ bytes: UnsafeRawBufferPointer) -> String {
        String(decoding: bytes.prefix(while: { $0 != 0 }), as: UTF8.self)
    }

    private static func text(_ path: String) -> String {
        (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
    }

    private static func value(of key: String, in text: String) -> String? {
        text.split(separator: "\n").first { $0.hasPrefix(key) }
            .flatMap { $0.split(separator: ":", maxSplits: 1).last }
            .map { $0.trimmingCharacters(in: .whitespaces) }
    }
}
