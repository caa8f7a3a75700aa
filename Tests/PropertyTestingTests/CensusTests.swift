// A census covers a whole process, so tests that expect no leftovers run in their own processes.

import Glibc
import PropertyTesting
import PropertyTestingSupport
import Testing

/// The kernel's ID of the calling thread.
private func threadNumber() -> Int32 {
    var bytes = [CChar](repeating: 0, count: 64)
    let length = readlink("/proc/thread-self", &bytes, bytes.count)  // .../task/<number>
    let text = String(decoding: bytes.prefix(max(0, length)).map(UInt8.init(bitPattern:)), as: UTF8.self)
    return text.split(separator: "/").last.flatMap { Int32($0) } ?? 0
}

/// Names the calling thread, because the process of an exit test has threads of Dispatch's pool,
/// too.
private func nameThread(_ name: String) {
    let file = open("/proc/thread-self/comm", O_WRONLY)
    defer { close(file) }
    write(file, name, name.utf8.count)
}

@Suite(.watched(.seconds(120))) struct CensusTests {
    @Test func `a thread, a file and an instance are found, by name`() throws {
        let before = try Census()
        let count = LiveCount("Widget")
        let widgets = [Counted(count), Counted(count)]
        let file = open("/dev/null", O_RDONLY)
        defer { close(file) }
        let left = concurrently(1) { _ in
            (threadNumber(), Result { try before.leftovers(within: .zero) })
        }
        let (thread, found) = (left[0].0, try left[0].1.get())
        #expect(found.contains { if case .thread(thread, _) = $0 { true } else { false } }, "\(found)")
        #expect(found.contains(.file(descriptor: file, target: "/dev/null")), "\(found)")
        #expect(found.contains(.instances(of: "Widget", count: 2)), "\(found)")
        withExtendedLifetime(widgets) {}
    }

    @Test func `threads that were joined are not left`() async {
        await #expect(processExitsWith: .success) {
            for _ in 0..<200 {
                let before = try Census()
                _ = concurrently(4) { _ in nameThread("census-test") }
                let left = try before.leftovers(except: { !"\($0)".hasSuffix("'census-test'") })
                try #require(left == [])
            }
        }
    }

    @Test func `a resource freed within the limit is not left`() async {
        await #expect(processExitsWith: .success) {
            let before = try Census()
            let file = open("/dev/null", O_RDONLY)
            var isFirst = true
            // Called for each leftover. The first call still finds the file open, and closes it.
            let left = try before.leftovers(within: .seconds(60)) { resource in
                if resource != .file(descriptor: file, target: "/dev/null") { return true }
                if isFirst { close(file) }
                isFirst = false
                return false
            }
            try #require(left == [] && !isFirst)
        }
    }

    @Test func `earlier resources are not leaks, and expected ones are not reported`() throws {
        let count = LiveCount("Gadget")
        let gadget = Counted(count)
        let before = try Census()
        #expect(before.resources.contains(.instances(of: "Gadget", count: 1)))
        let another = Counted(count)
        let isGadget = { (resource: Resource) in
            if case .instances("Gadget", _) = resource { true } else { false }
        }
        let after = try Census()
        #expect(before.leftovers(in: after).filter(isGadget) == [.instances(of: "Gadget", count: 1)])
        #expect(try before.leftovers(within: .zero, except: { _ in true }) == [])
        withExtendedLifetime((gadget, another)) {}
    }

    @Test func `a file that replaced another is left`() async {
        await #expect(processExitsWith: .success) {
            let file = open("/dev/null", O_RDONLY)
            let before = try Census()
            try #require(dup2(open("/dev/zero", O_RDONLY), file) == file)
            let left = try before.leftovers(within: .zero)
            try #require(left.contains(.file(descriptor: file, target: "/dev/zero")))
        }
    }

    @Test func `without a file descriptor there is no census`() async {
        await #expect(processExitsWith: .success) {
            let before = try Census()
            let spare = open("/dev/null", O_RDONLY)
            defer { close(spare) }  // LeakSanitizer needs a free descriptor to read /proc at exit
            while open("/dev/null", O_RDONLY) >= 0 {}
            let error = CensusError(path: "/proc/self/task", code: EMFILE)
            try #require(throws: error) { try before.leftovers() }
            try #require("\(error)" == "/proc/self/task cannot be read: Too many open files")
        }
    }

    @Test func `the helper records leftovers, and only those`() async {
        await expectNothingLeft(except: { _ in true }) {}
        await withKnownIssue {
            let count = LiveCount("Gizmo")
            let gizmo = await expectNothingLeft(within: .zero, except: { !"\($0)".contains("Gizmo") }) {
                Counted(count)
            }
            withExtendedLifetime(gizmo) {}
        } matching: { issue in
            issue.comments.map(\.rawValue) == ["Left behind:\n1 of Gizmo"]
        }
    }

    struct Failed: Error, Equatable {}

    @Test func `the helper rethrows its body's error`() async {
        await #expect(throws: Failed()) {
            try await expectNothingLeft(except: { _ in true }) { () async throws(Failed) in throw Failed() }
        }
    }
}

@Suite struct LiveCountTests {
    @Test func `an instance counts until it is released`() {
        let count = LiveCount("Thing")
        var things = (0..<3).map { _ in Counted(count) }
        #expect(count.value == 3)
        things.removeLast()
        #expect(count.value == 2)
        let closure = { [things] in things.count }
        things = []
        #expect(count.value == closure())
    }

    @Test func `threads count together`() {
        let count = LiveCount("Thing")
        let kept = concurrently(8) { _ in
            for _ in 0..<1_000 { withExtendedLifetime(Counted(count)) {} }
            return Counted(count)
        }
        #expect(count.value == 8)
        withExtendedLifetime(kept) {}
    }

    @Test func `an unreferenced count is forgotten`() throws {
        do { withExtendedLifetime(Counted(LiveCount("Forgotten"))) {} }
        _ = LiveCount("Another")
        #expect(!(try Census()).resources.contains { "\($0)".contains("Forgotten") })
    }
}
