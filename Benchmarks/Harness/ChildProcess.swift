import Foundation
import Glibc

/// The coordinator's side of one child: asks, waits with a time limit, and kills what does not answer.
public final class ChildProcess {
    /// How a request ended.
    public enum Outcome {
        /// The child's answer.
        case answered(Response)
        /// No answer within the time limit; the child has been killed.
        case timedOut
        /// The child ended.
        case died
    }

    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()
    private var buffer = Data()
    /// Whether the child can be asked.
    public private(set) var isAlive = true

    /// Starts `program child` with arguments.
    ///
    /// - Parameter environment: what is added to this process's.
    /// - Throws: ``BenchmarkError`` when the program cannot be started.
    public init(program: String, arguments: [String], environment: [String: String] = [:]) throws {
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardInput = input
        process.standardOutput = output
        do {
            try process.run()
        } catch {
            throw BenchmarkError("The program '\(program)' cannot be started: \(error.localizedDescription)")
        }
    }

    /// The child's process identifier.
    public var pid: Int32 { process.processIdentifier }

    /// Asks, and waits for the answer.
    public func ask(_ request: Request, limit: Duration) -> Outcome {
        guard isAlive, var line = try? JSONEncoder().encode(request) else { return .died }
        line.append(UInt8(ascii: "\n"))
        do {
            try input.fileHandleForWriting.write(contentsOf: line)
        } catch {
            end()
            return .died
        }
        let deadline = ContinuousClock.now + limit
        while true {
            if let newline = buffer.firstIndex(of: UInt8(ascii: "\n")) {
                let answer = buffer[..<newline]
                buffer = buffer[buffer.index(after: newline)...]
                guard let response = try? JSONDecoder().decode(Response.self, from: answer) else {
                    end()
                    return .died
                }
                return .answered(response)
            }
            switch waitForOutput(until: deadline) {
            case .ready(let data): buffer.append(data)
            case .timedOut:
                end()
                return .timedOut
            case .closed:
                end()
                return .died
            }
        }
    }

    private enum Output {
        case ready(Data)
        case timedOut
        case closed
    }

    private func waitForOutput(until deadline: ContinuousClock.Instant) -> Output {
        let left = deadline - .now
        guard left > .zero else { return .timedOut }
        let descriptor = output.fileHandleForReading.fileDescriptor
        var event = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        let milliseconds = Int32(min(left / .milliseconds(1), 1e9)) + 1
        let count = poll(&event, 1, milliseconds)
        if count == 0 { return .timedOut }
        if count < 0 { return errno == EINTR ? .ready(Data()) : .closed }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let length = read(descriptor, &bytes, bytes.count)
        return length > 0 ? .ready(Data(bytes[..<length])) : .closed
    }

    /// Ends the child, at once.
    public func end() {
        guard isAlive else { return }
        isAlive = false
        // Foundation starts each child in a group of its own, and waits until all of that is gone.
        kill(-pid, SIGKILL)
        process.waitUntilExit()
    }
}
