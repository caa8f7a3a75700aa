import Foundation
import Glibc

/// The resources that a process has used up.
public struct Costs: Codable, Sendable {
    /// CPU time, user and system, of all threads, in nanoseconds.
    public var cpu_ns: Double
    /// Context switches because a thread had nothing to do.
    public var voluntary: Double
    /// Context switches because another thread had to run.
    public var involuntary: Double
    /// The most memory that was ever resident, in bytes.
    public var peakResident_bytes: Double

    /// Returns the costs of the calling process so far.
    public static func now() -> Costs {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        func nanoseconds(_ time: timeval) -> Double { Double(time.tv_sec) * 1e9 + Double(time.tv_usec) * 1e3 }
        return Costs(
            cpu_ns: nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime),
            voluntary: Double(usage.ru_nvcsw),
            involuntary: Double(usage.ru_nivcsw), peakResident_bytes: Double(usage.ru_maxrss) * 1024)
    }

    /// Returns the costs since `earlier`; the peak is the current one.
    public func since(_ earlier: Costs) -> Costs {
        Costs(
            cpu_ns: cpu_ns - earlier.cpu_ns, voluntary: voluntary - earlier.voluntary,
            involuntary: involuntary - earlier.involuntary, peakResident_bytes: peakResident_bytes)
    }
}

/// The voluntary context switches of all threads of a process so far, according to the kernel; nil when the
/// process is gone.
public func voluntarySwitches(ofProcess pid: Int32) -> Int? {
    let folder = "/proc/\(pid)/task"
    guard let threads = try? FileManager.default.contentsOfDirectory(atPath: folder) else { return nil }
    var sum = 0
    for thread in threads {
        guard let status = try? String(contentsOfFile: "\(folder)/\(thread)/status", encoding: .utf8) else {
            continue
        }
        for line in status.split(separator: "\n") where line.hasPrefix("voluntary_ctxt_switches:") {
            sum += Int(line.split(separator: "\t").last ?? "") ?? 0
        }
    }
    return sum
}
