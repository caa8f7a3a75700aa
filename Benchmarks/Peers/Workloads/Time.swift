import Glibc
import MeasuredLoop

/// The monotonic clock in nanoseconds. A reading costs 50 to 70 ns here.
@inline(__always)
func now_ns() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return time.tv_sec &* 1_000_000_000 &+ time.tv_nsec
}

/// Begins the measurement of a sample. Everything that is counted in addition to time starts just before the clock.
///
/// - Returns: the monotonic clock in nanoseconds.
@inline(__always)
func startClock() -> Int {
    measured_loop_began()
    return now_ns()
}

/// Ends the measurement of a sample; another measurement may begin, and the parts add up.
///
/// - Returns: the monotonic clock in nanoseconds.
@inline(__always)
func stopClock() -> Int {
    let stop = now_ns()
    measured_loop_ended()
    return stop
}

/// Sleeps until the monotonic clock shows `due_ns`.
func sleep(until due_ns: Int) {
    var time = timespec(tv_sec: due_ns / 1_000_000_000, tv_nsec: due_ns % 1_000_000_000)
    while clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nil) == EINTR {}
}

/// Like ``sleep(until:)``, but accurate to the microsecond: the timer is some 60 us late, so the clock is polled at the end.
func wait(until due_ns: Int) {
    sleep(until: due_ns - 100_000)
    while now_ns() < due_ns {}
}

/// CPU time and voluntary context switches of the process without those of the calling thread, whose own sleeps
/// would hide the peer's.
struct OthersUsage {
    var cpu_ns: Int
    var switches: Int

    static func now() -> OthersUsage {
        let whole = usage(Int32(RUSAGE_SELF.rawValue))
        // RUSAGE_THREAD, which glibc declares only for C's _GNU_SOURCE.
        let caller = usage(1)
        return OthersUsage(
            cpu_ns: whole.cpu_ns - caller.cpu_ns, switches: whole.switches - caller.switches)
    }

    static func - (later: OthersUsage, earlier: OthersUsage) -> OthersUsage {
        OthersUsage(cpu_ns: later.cpu_ns - earlier.cpu_ns, switches: later.switches - earlier.switches)
    }

    private static func usage(_ who: Int32) -> OthersUsage {
        var usage = rusage()
        getrusage(who, &usage)
        func nanoseconds(_ time: timeval) -> Int { time.tv_sec * 1_000_000_000 + time.tv_usec * 1000 }
        return OthersUsage(
            cpu_ns: nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime), switches: usage.ru_nvcsw)
    }
}
