// The automatic number of workers: the quota of the cgroups (v2, v1), the affinity mask, the environment.

import CScheduler
import CScheduler.Internals
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Testing

private let unlimited = UInt32.max

/// A folder that is removed, with its contents, when this object is deallocated: a stand-in for /sys/fs/cgroup.
private final class Folder: Sendable {
    let path: String

    init() throws {
        var template = Array("/tmp/sizing-XXXXXX".utf8CString)
        try #require(mkdtemp(&template) != nil)
        path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    deinit { Folder.remove(path) }

    private static func remove(_ path: String) {
        for name in names(in: path) ?? [] { remove(path + "/" + name) }
        _ = Glibc.remove(path)
    }

    /// Writes a file, and creates the folders that it lies in.
    func write(_ bytes: [UInt8], to name: String) throws {
        var folder = path
        for part in name.split(separator: "/").dropLast() {
            folder += "/" + part
            mkdir(folder, 0o755)
        }
        let file = try #require(fopen(path + "/" + name, "we"))
        fwrite(bytes, 1, bytes.count, file)
        fclose(file)
    }

    func write(_ text: String, to name: String) throws { try write(Array(text.utf8), to: name) }

    /// Returns the quota of a process with these memberships.
    func quota(membership: String) throws -> UInt32 {
        try write(membership, to: "membership")
        return csched_sizing_quota(path + "/membership", path)
    }
}

/// One level of a hierarchy: nil has no files, a quota of nil has no limit.
private struct Level: Sendable {
    let quota: Int?
    let period: Int

    var cpus: UInt32 { quota.map { UInt32(($0 + period - 1) / period) } ?? unlimited }
}

/// The levels from the root down.
private let hierarchies: Generator<[Level?]> = {
    let limits = Generator<(Int, Int)>.zip(.int(in: 1...2_000_000), .element(of: [100_000, 1000, 50_000]))
    let limited = limits.map { Level(quota: $0.0, period: $0.1) }
    let level = Generator<Level>.frequency([
        (1, .element(of: [Level(quota: nil, period: 100_000)])), (3, limited),
    ])
    return level.optional.array(count: 1...6)
}()

/// "" for the root, "/g1/g2" for the third level.
private func group(_ depth: Int) -> String { (0..<depth).map { "/g\($0 + 1)" }.joined() }

/// Narrows the calling thread's affinity mask to one of the CPUs in it; false: the system refused.
private func bindToOneCPU() -> Bool {
    // By name, because the module map leaves them out.
    typealias Call = @convention(c) (pid_t, Int, UnsafeMutableRawPointer) -> Int32
    guard let get = dlsym(nil, "sched_getaffinity"), let set = dlsym(nil, "sched_setaffinity") else {
        return false
    }
    var mask = [UInt8](repeating: 0, count: 1024)
    guard unsafeBitCast(get, to: Call.self)(0, mask.count, &mask) == 0,
        let byte = mask.firstIndex(where: { $0 != 0 })
    else { return false }
    let lowest = mask[byte] & (~mask[byte] &+ 1)
    mask = [UInt8](repeating: 0, count: 1024)
    mask[byte] = lowest
    return unsafeBitCast(set, to: Call.self)(0, mask.count, &mask) == 0
}

@Suite(.inTurn) struct SizingTests {
    /// The tightest group between the process's own and the root counts; groups below its own do not.
    @Test func `version 2: the tightest group on the way to the root decides`() async {
        await forAll(hierarchies, cases: scaled(100)) { levels in
            let folder = try Folder()
            for (depth, level) in levels.enumerated() {
                guard let level else { continue }
                let quota = level.quota.map(String.init) ?? "max"
                try folder.write("\(quota) \(level.period)\n", to: group(depth) + "/cpu.max")
            }
            let own = group(levels.count - 1)
            try folder.write("1 100000\n", to: own + "/below/cpu.max")
            try folder.write("1 100000\n", to: own + "beside/cpu.max")
            let expected = levels.compactMap { $0?.cpus }.min() ?? unlimited
            try #require(try folder.quota(membership: "0::\(own.isEmpty ? "/" : own)\n") == expected)
        }
    }

    /// Version 1 has two files, and one hierarchy for each set of controllers.
    @Test(arguments: ["cpu", "cpu,cpuacct", "cpuacct,cpu", "a,cpu,b"])
    func `version 1: the tightest group of the controller cpu decides`(controllers: String) async {
        await forAll(hierarchies, cases: scaled(50)) { levels in
            let folder = try Folder()
            for (depth, level) in levels.enumerated() {
                guard let level else { continue }
                let place = controllers + group(depth)
                try folder.write("\(level.quota ?? -1)\n", to: place + "/cpu.cfs_quota_us")
                try folder.write("\(level.period)\n", to: place + "/cpu.cfs_period_us")
            }
            let own = group(levels.count - 1)
            let path = own.isEmpty ? "/" : own
            // Other controllers whose names contain "cpu".
            for other in ["cpuset", "cpuacct", "xcpu"] {
                try folder.write("1\n", to: other + own + "/cpu.cfs_quota_us")
                try folder.write("100000\n", to: other + own + "/cpu.cfs_period_us")
            }
            let expected = levels.compactMap { $0?.cpus }.min() ?? unlimited
            let membership = """
                9:cpuset:\(path)
                8:name=systemd:\(path)
                7:cpuacct:\(path)
                6:xcpu:\(path)
                5:\(controllers):\(path)
                """
            try #require(try folder.quota(membership: membership) == expected)
        }
    }

    @Test func `the tighter of both versions decides`() throws {
        let folder = try Folder()
        try folder.write("500000 100000\n", to: "here/cpu.max")
        try folder.write("300000\n", to: "cpu,cpuacct/there/cpu.cfs_quota_us")
        try folder.write("100000\n", to: "cpu,cpuacct/there/cpu.cfs_period_us")
        #expect(try folder.quota(membership: "4:cpu,cpuacct:/there\n0::/here\n") == 3)
        #expect(try folder.quota(membership: "0::/here\n4:cpu,cpuacct:/there") == 3)
        #expect(try folder.quota(membership: "4:cpu,cpuacct:/elsewhere\n0::/here\n") == 5)
        #expect(try folder.quota(membership: "") == unlimited)
    }

    @Test func `a quota is rounded up`() async {
        await forAll(.zip(.int(in: 1...10_000_000), .int(in: 1...1_000_000))) { (quota: Int, period: Int) in
            let expected = Int((Double(quota) / Double(period)).rounded(.up))
            try #require(Int(csched_sizing_parse_quota("\(quota)", "\(period)")) == expected)
            try #require(Int(csched_sizing_parse_quota("\(quota)\n", "\(period)\n")) == expected)
        }
    }

    @Test(arguments: ["max", "-1", "0", "", "-5", "x100000", "\n", "-99999999999999999999"])
    func `an invalid quota or period is no limit`(text: String) {
        #expect(csched_sizing_parse_quota(text, "100000") == unlimited)
        #expect(csched_sizing_parse_quota("100000", text) == unlimited)
    }

    @Test func `a quota of more CPUs than can be counted is no limit`() {
        #expect(csched_sizing_parse_quota("4294967294", "1") == unlimited - 1)
        #expect(csched_sizing_parse_quota("4294967295", "1") == unlimited)
        #expect(csched_sizing_parse_quota("9223372036854775807", "1") == unlimited)
        // Adding the quota and the period would overflow.
        #expect(csched_sizing_parse_quota("9223372036854775807", "100000") == unlimited)
        #expect(csched_sizing_parse_quota("99999999999999999999999", "100000") == unlimited)
    }

    /// The files are not trusted: the answer is a number of CPUs, whatever they contain.
    @Test func `files of any content give at least one CPU`() async {
        let bytes = Generator<UInt8>.oneOf([
            .element(of: Array("0123456789:/,- \nmaxcpug".utf8)),
            Generator<Int>.int(in: 0...255).map(UInt8.init),
        ])
        let file = bytes.array(count: 0...60)
        await forAll(.zip(file, file.array(count: 3...3)), cases: scaled(300)) {
            (membership: [UInt8], files: [[UInt8]]) in
            let folder = try Folder()
            try folder.write(Array("5:cpu:/g1\n0::/g1\n".utf8) + membership, to: "membership")
            try folder.write(files[0], to: "g1/cpu.max")
            try folder.write(files[1], to: "cpu/g1/cpu.cfs_quota_us")
            try folder.write(files[2], to: "cpu/g1/cpu.cfs_period_us")
            try #require(csched_sizing_quota(folder.path + "/membership", folder.path) >= 1)
        }
    }

    @Test func `lines without memberships are skipped`() throws {
        let folder = try Folder()
        try folder.write("200000 100000\n", to: "here/cpu.max")
        let long = String(repeating: "x", count: 20_000)
        for line in [
            "", "no colon", "one:colon", ":", "::", "7:cpu:", "7:cpu", "0::/\(long)", "7:\(long):/", long,
        ] {
            #expect(try folder.quota(membership: "\(line)\n0::/here\n") == 2, "\(line.prefix(20))")
        }
    }

    @Test func `missing files are no limit`() throws {
        let folder = try Folder()
        #expect(csched_sizing_quota(folder.path + "/missing", folder.path) == unlimited)
        #expect(csched_sizing_quota(folder.path, folder.path) == unlimited)  // a folder in place of a file
        #expect(try folder.quota(membership: "0::/nowhere/at/all\n5:cpu:/nowhere\n") == unlimited)
        try folder.write("200000 100000\n", to: "cpu.max")
        #expect(try folder.quota(membership: "0::/nowhere/at/all\n") == 2)
        #expect(csched_sizing_quota(folder.path + "/membership", folder.path + "/missing") == unlimited)
    }

    /// A period without a quota, a quota without a period, and other fragments.
    @Test(arguments: ["", "\n", "200000", "200000\n", " ", "max", "200000 max", "max max", "- -"])
    func `a file that is cut short is no limit`(text: String) throws {
        let folder = try Folder()
        try folder.write(text, to: "cpu.max")
        #expect(try folder.quota(membership: "0::/\n") == unlimited)
    }

    /// In its own process, whose affinity mask is narrowed.
    @Test func `the affinity mask bounds the number of workers`() async {
        await #expect(processExitsWith: .success) {
            unsetenv("CSCHED_WORKERS")
            var before: UInt32 = 0
            #expect(csched_automatic_workers(&before) == .ok)
            try #require(bindToOneCPU())
            var after: UInt32 = 0
            #expect(csched_automatic_workers(&after) == .ok)
            #expect(after == 1)
            #expect(before >= after)
            setenv("CSCHED_WORKERS", "5", 1)
            #expect(csched_automatic_workers(&after) == .ok)
            #expect(after == 5)
        }
    }

    /// In its own process, whose environment is modified.
    @Test func `the environment is a whole number between 1 and 256, or is not used`() async {
        await #expect(processExitsWith: .success) {
            var automatic: UInt32 = 0
            unsetenv("CSCHED_WORKERS")
            #expect(csched_automatic_workers(&automatic) == .ok)
            try #require((1...256).contains(automatic))
            await forAll(.int(in: -10...300)) { number in
                var workers: UInt32 = 77
                setenv("CSCHED_WORKERS", "\(number)", 1)
                let status = csched_automatic_workers(&workers)
                if (1...256).contains(number) {
                    try #require(status == .ok && workers == number)
                } else {
                    try #require(status == .ok && workers == automatic)
                }
            }
            for wish in [" 3", "+3", "3 ", "0x3", "3.0", "３", "18446744073709551617", "\n"] {
                var workers: UInt32 = 77
                setenv("CSCHED_WORKERS", wish, 1)
                #expect(csched_automatic_workers(&workers) == .ok)
                #expect(workers == automatic)
            }
            var workers: UInt32 = 77
            setenv("CSCHED_WORKERS", "", 1)
            #expect(csched_automatic_workers(&workers) == .ok)
            #expect(workers == automatic)
        }
    }
}
