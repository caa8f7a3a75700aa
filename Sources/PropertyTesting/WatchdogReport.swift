// A watchdog whose limit has expired reports everything that may help to find the reason, then ends the
// process, even if the report hangs as well.

import Glibc
import Synchronization

/// The first watchdog whose limit expires ends the process; others must not write into its report.
private let isBarking = Atomic(false)

/// Ends the process.
///
/// - Parameter sentence: the text that is written before anything else is tried.
func bark(_ sentence: String, about scope: WatchedScope, status: CInt) -> Never {
    if isBarking.exchange(true, ordering: .relaxed) { while true { pause() } }

    // The alarm, as a last resort, needs neither memory nor another thread: a thread that was stopped
    // inside malloc may hold a lock that the report needs.
    signal(SIGALRM, SIG_DFL)
    var alarmSignal = sigset_t()
    sigemptyset(&alarmSignal)
    sigaddset(&alarmSignal, SIGALRM)
    pthread_sigmask(SIG_UNBLOCK, &alarmSignal, nil)
    alarm(30)

    say(sentence)
    let isReported = Gate()
    pthread_detach(
        startThread(for: "Watchdog") {
            nameThisThread("watchdog report")
            report(on: scope)
            isReported.open()
        })
    if !isReported.wait(timeout: .seconds(10)) { say("watchdog: the report itself has not ended.\n") }
    _exit(status)
}

/// The part that needs no user code comes first: user code may hang.
private func report(on scope: WatchedScope) {
    sayThreads(of: "self", indentedBy: "  ")
    let children = children()
    for child in children {
        say("  child process \(child), which is killed:\n")
        sayThreads(of: "\(child)", indentedBy: "    ")
        kill(child, SIGKILL)
    }
    let state = scope.state()
    if !state.isEmpty { say("  its state: \(state)\n") }
    let others = WatchedScope.current.filter { $0 !== scope }
    for other in others where other.isInside(scope) { sayState(of: other, as: "inside it") }
    for other in others where !other.isInside(scope) {
        sayState(of: other, as: scope.isInside(other) ? "around it" : "beside it")
    }
}

private func sayState(of scope: WatchedScope, as relation: String) {
    let text = [scope.what, scope.state()].filter { !$0.isEmpty }.joined(separator: ": ")
    say("  \(relation), for \(ContinuousClock.now - scope.began): \(text)\n")
}

private func sayThreads(of process: String, indentedBy indentation: String) {
    for thread in (names(in: "/proc/\(process)/task") ?? []).compactMap({ Int32($0) }).sorted() {
        let files = "/proc/\(process)/task/\(thread)"
        guard let name = contents(of: "\(files)/comm"), let stat = contents(of: "\(files)/stat"),
            let end = stat.lastIndex(of: ")")
        else { continue }  // it has ended
        // proc(5): after the name come the state, and as 12th and 13th fields the CPU time.
        let fields = stat[stat.index(after: end)...].split(separator: " ")
        guard fields.count > 12, let user = Int(fields[11]), let system = Int(fields[12]) else { continue }
        let milliseconds = 1000 * (user + system) / max(1, sysconf(Int32(_SC_CLK_TCK)))
        say(
            "\(indentation)thread \(thread) '\(name)' \(fields[0]), ran \(Duration.milliseconds(milliseconds))"
                + place(files) + "\n")
    }
}

/// The kernel function in which a thread waits, and the address if it is a futex: threads that wait on the
/// same address wait for the same event. A kernel may hide either.
private func place(_ files: String) -> String {
    guard let function = contents(of: "\(files)/wchan"), function != "0", !function.isEmpty else { return "" }
    let call = (contents(of: "\(files)/syscall") ?? "").split(separator: " ")
    let address = function.hasPrefix("futex") && call.count > 1 ? " on \(call[1])" : ""
    return ", waits in \(function)\(address)"
}

/// The child processes, for instance exit tests; after the exit no process would wait for them.
private func children() -> [pid_t] {
    (names(in: "/proc/self/task") ?? []).flatMap { thread in
        let children = contents(of: "/proc/self/task/\(thread)/children") ?? ""
        return children.split(separator: " ").compactMap { pid_t($0) }
    }
}

/// Writes without stdio, whose locks a hanging thread may hold.
private func say(_ text: String) {
    var text = text
    text.withUTF8 { bytes in
        var written = 0
        while written < bytes.count {
            let length = write(STDERR_FILENO, bytes.baseAddress! + written, bytes.count - written)
            if length < 0 && errno != EINTR { return }
            written += max(0, length)
        }
    }
}
