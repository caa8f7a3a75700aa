// MainThread.swift - scenes that run on a main thread. The main thread of a test process is not available: it stays in
// `dispatchMain()` for ever. Each scene therefore runs in a separate process: this program, started again, plays the
// scene before its `main`.

import Dispatch
import Glibc
import PropertyTesting

/// Checks an expectation of a scene; a failure ends the scene.
func expectInScene(_ condition: Bool, _ sentence: String) {
    if condition { return }
    let line = "in a scene: not so: \(sentence)\n"
    _ = write(STDERR_FILENO, line, line.utf8.count)
    _exit(1)
}

/// A body that runs on the main thread of a separate process.
struct Scene: Sendable {
    fileprivate static let variable = "MAIN_THREAD_SCENE"
    /// The time in seconds after which the process is killed.
    private static let limit: UInt32 = 120

    let name: String
    let body: @Sendable () -> Void

    init(_ name: String, _ body: @escaping @Sendable () -> Void) {
        self.name = name
        self.body = body
    }

    /// Plays the scene, in another process.
    ///
    /// - Returns: the status of the process as reported by `waitpid`; 0 if all expectations held.
    func status() async -> Int32 {
        await aside { [name] in
            let arguments: [UnsafeMutablePointer<CChar>?] = [strdup(name), nil]
            let inherited = (0...).lazy.map { environ[$0] }.prefix { $0 != nil }
            let variable = strdup("\(Self.variable)=\(name)")
            defer {
                free(arguments[0])
                free(variable)
            }
            var process = pid_t()
            let code = posix_spawn(
                &process, "/proc/self/exe", nil, nil, arguments, Array(inherited) + [variable, nil])
            guard code == 0 else { fatalError("no process: \(code)") }
            var status: Int32 = 0
            while waitpid(process, &status, 0) < 0, errno == EINTR {}
            return status
        }
    }

    fileprivate func play() -> Never {
        alarm(Self.limit)
        body()
        _exit(0)
    }
}

@section(".init_array") @used
private let beforeMain: @convention(c) () -> Void = {
    guard let name = getenv(Scene.variable).map({ String(cString: $0) }) else { return }
    guard let scene = MainQueueTests.scenes.first(where: { $0.name == name }) else {
        fatalError("there is no scene '\(name)'")
    }
    scene.play()
}

/// The main queue, as run loops see it.
enum RawMainQueue {
    /// Becomes readable when there is something in the queue.
    static let descriptor = function(
        "_dispatch_get_main_queue_handle_4CF", as: (@convention(c) () -> Int32).self)()

    /// Runs the queued items.
    static func serve() {
        typealias Serve = @convention(c) (UnsafeMutableRawPointer?) -> Void
        function("_dispatch_main_queue_callback_4CF", as: Serve.self)(nil)
    }

    /// Waits for something in the queue.
    ///
    /// - Parameter milliseconds: how long at most; -1: for ever.
    /// - Returns: whether the queue had something; if so, the descriptor has been emptied.
    static func awaitItems(_ milliseconds: Int32 = -1) -> Bool {
        var one = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&one, 1, milliseconds) == 1 else { return false }
        empty()
        return true
    }

    /// Empties the descriptor, as a poller does before it serves the queue.
    static func empty() {
        var count: UInt64 = 0
        _ = read(descriptor, &count, MemoryLayout.size(ofValue: count))
    }

    private static func function<Function>(_ name: String, as type: Function.Type) -> Function {
        guard let address = dlsym(nil, name) else { fatalError("there is no \(name)") }
        return unsafeBitCast(address, to: type)
    }
}
