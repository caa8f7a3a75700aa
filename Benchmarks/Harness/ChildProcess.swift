import Foundation
import Subprocess
import Synchronization
import SystemPackage

/// The coordinator's side of one child: sends requests, waits with a time limit, and kills a child that does not answer.
///
/// The child has its own process group: Ctrl-C reaches only the coordinator, and everything that a child has started ends
/// with it. Only one task sends requests at a time.
public final class ChildProcess: Sendable {
    /// How a request ended.
    public enum Outcome: Sendable {
        /// The child's answer.
        case answered(Response)
        /// No answer within the time limit; the child has been killed.
        case timedOut
        /// The child ended, or was killed because the requesting task was cancelled.
        case died
    }

    /// A line for the child, and the continuation for its answer: nil when the child has ended.
    private struct Question: Sendable {
        let line: String
        let answer: CheckedContinuation<String?, Never>
    }

    /// The process's identifier.
    public let pid: Int32
    private let questions: AsyncStream<Question>.Continuation
    private let life: Task<Void, Never>
    private let isOver = Atomic(false)

    /// Starts `program` with arguments.
    ///
    /// - Parameter environment: additions to this process's environment.
    /// - Throws: ``BenchmarkError`` when the program cannot be started.
    public init(program: String, arguments: [String], environment: [String: String] = [:]) async throws {
        var options = PlatformOptions()
        options.processGroupID = 0  // its own group
        options.teardownSequence = [
            .send(signal: .kill, toProcessGroup: true, allowedDurationToNextStep: .seconds(1))
        ]
        let configuration = Configuration(
            executable: .path(FilePath(program)), arguments: Arguments(arguments),
            environment: .inherit.updating(
                Dictionary(
                    uniqueKeysWithValues: environment.map { (Environment.Key(stringLiteral: $0), $1) })),
            platformOptions: options)
        let (stream, questions) = AsyncStream.makeStream(of: Question.self)
        let (started, start) = AsyncStream.makeStream(of: Result<Int32, any Error>.self)
        self.questions = questions
        life = Task {
            do {
                _ = try await run(
                    configuration, input: .inputWriter, output: .sequence, error: .currentStandardError
                ) { execution in
                    start.yield(.success(execution.processIdentifier.value))
                    var answers = execution.standardOutput.strings(
                        separatedBy: .unicodeScalarSequence("\n".unicodeScalars), bufferingPolicy: .unbounded
                    ).makeAsyncIterator()
                    for await question in stream {
                        let isAsked = (try? await execution.standardInputWriter.write(question.line)) != nil
                        let answer = isAsked ? try? await answers.next() : nil
                        question.answer.resume(returning: answer)
                    }
                }
            } catch {
                start.yield(.failure(error))
            }
        }
        switch await started.first(where: { _ in true }) {
        case .success(let pid)?: self.pid = pid
        case .failure(let error)?:
            throw BenchmarkError("The program '\(program)' cannot be started: \(error).")
        case nil: throw CancellationError()
        }
    }

    /// Whether the child accepts requests.
    public var isAlive: Bool { !isOver.load(ordering: .relaxed) }

    /// Sends a request, and waits for the answer.
    public func ask(_ request: Request, limit: Duration) async -> Outcome {
        guard isAlive, let data = try? JSONEncoder().encode(request) else { return .died }
        let line = String(decoding: data, as: UTF8.self) + "\n"
        switch await answer(to: line, limit: limit) {
        case .line(let answer):
            guard let answer, let response = try? JSONDecoder().decode(Response.self, from: Data(answer.utf8))
            else { break }
            return .answered(response)
        case .timedOut: return .timedOut
        case .cancelled: break
        }
        await end()
        return .died
    }

    private enum Answer {
        case line(String?)
        case timedOut
        case cancelled
    }

    /// Returns the first of answer, timeout and cancellation. A late child is killed, which also yields an answer.
    private func answer(to line: String, limit: Duration) async -> Answer {
        await withTaskGroup(of: Answer.self) { group in
            group.addTask { [questions] in
                .line(
                    await withCheckedContinuation { answer in
                        questions.yield(Question(line: line, answer: answer))
                    })
            }
            group.addTask {
                do {
                    try await Task.sleep(for: limit)
                    return .timedOut
                } catch {
                    return .cancelled
                }
            }
            let first = await group.next() ?? .cancelled
            if case .line = first {} else { await end() }
            group.cancelAll()
            return first
        }
    }

    /// Kills the child and everything it has started; returns when the child has ended.
    public func end() async {
        isOver.store(true, ordering: .relaxed)
        questions.finish()
        life.cancel()
        await life.value
    }
}
