import Foundation
import Glibc

/// What is to be known about the machine and the build in order to read the numbers.
public enum Machine {
    /// The processor, its CPUs, the kernel, and whether it is a virtual machine.
    public static func description() -> [String: String] {
        let processor = text("/proc/cpuinfo")
        var name = utsname()
        uname(&name)
        let kernel = withUnsafeBytes(of: &name.release) { bytes in
            String(decoding: bytes.prefix(while: { $0 != 0 }), as: UTF8.self)
        }
        return [
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
    public static func build() -> [String: String] {
        [
            "commit": commit(),
            "compiler": output(of: "swift", "--version") ?? "unknown",
            "configuration": isDebug ? "debug: the numbers mean nothing" : "release",
            "assertions": isDebug ? "on" : "off",
            "allocator": allocator(),
        ]
    }

    /// jemalloc as this process runs on it, with what `allocator_options.c` sets.
    private static func allocator() -> String {
        typealias Control =
            @convention(c) (
                UnsafePointer<CChar>, UnsafeMutableRawPointer, UnsafeMutablePointer<Int>,
                UnsafeMutableRawPointer?, Int
            ) -> Int32
        // By name, because linking jemalloc would decide the allocator.
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

    /// The share of CPU time that the hypervisor took away, since the machine started, as ticks.
    static func stolenTicks() -> (stolen: Double, all: Double) {
        let fields = text("/proc/stat").prefix { $0 != "\n" }.split(separator: " ").dropFirst().compactMap {
            Double($0)
        }
        return (fields.count > 7 ? fields[7] : 0, fields.reduce(0, +))
    }

    /// Of the repository that this program was built in, as it is now.
    private static func commit() -> String {
        let root = (0..<3).reduce(URL(fileURLWithPath: #filePath)) { path, _ in
            path.deletingLastPathComponent()
        }
        guard let commit = output(of: "git", "-C", root.path, "rev-parse", "HEAD") else { return "unknown" }
        let changes = output(of: "git", "-C", root.path, "status", "--porcelain", "--untracked-files=no")
        return changes == nil ? commit : "\(commit), with changes"
    }

    /// The first line that a program prints; nil when it prints none, or cannot be started.
    static func output(of command: String...) -> String? {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = command
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return nil }
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return String(decoding: data, as: UTF8.self).split(separator: "\n").first.map(String.init)
    }

    /// Of this process's control group: microseconds of CPU time in a period, and the period.
    private static func quota() -> String? {
        let group = text("/proc/self/cgroup").split(separator: "\n").first { $0.hasPrefix("0::") }
        return line("/sys/fs/cgroup\(group?.dropFirst(3) ?? "")/cpu.max")
    }

    private static func line(_ path: String) -> String? {
        text(path).split(separator: "\n").first.map(String.init)
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
