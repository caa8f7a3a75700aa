// StateMachine.swift - systems with a state against a model of it: commands one after another, and at the same time.

import CompositeOperationsBasics

/// Something that has a state, with a model of it: what can be asked of it, and which answers are right.
///
/// ```swift
/// struct Stack: StateMachine {
///     enum Command: Sendable { case push(Int), pop }
///     var initial: [Int] { [] }
///     func makeSystem() -> MyStack { MyStack() }
///     func commands(in model: [Int]) -> Generator<Command> {
///         .oneOf([Generator<Int>.int(in: 0...9).map { .push($0) }, .element(of: [.pop])])
///     }
///     func run(_ command: Command, on stack: MyStack) -> Int? {
///         switch command {
///         case .push(let value): stack.push(value); return nil
///         case .pop: return stack.pop()
///         }
///     }
///     func step(_ model: [Int], _ command: Command, _ answer: Int?) -> [Int]? {
///         switch command {
///         case .push(let value): model + [value]
///         case .pop: model.last == answer ? Array(model.dropLast()) : nil
///         }
///     }
/// }
/// ```
///
/// Source: the state machines of QuickCheck: Claessen and others, Finding Race Conditions in Erlang with QuickCheck and PULSE (2009).
public protocol StateMachine<Model>: Sendable {
    /// The state, as far as answers tell.
    associatedtype Model: Hashable & Sendable
    /// The system under test.
    associatedtype System: Sendable
    /// The commands that it takes.
    associatedtype Command: Sendable
    /// Its answer to a command.
    associatedtype Answer: Sendable

    /// The state in which a system begins.
    var initial: Model { get }
    /// Makes a system, for one case.
    func makeSystem() async throws -> System
    /// The commands that a state allows. A precondition is made by leaving a command out.
    func commands(in model: Model) -> Generator<Command>
    /// Asks it.
    func run(_ command: Command, on system: System) async -> Answer
    /// The state after a command, when the answer is right; nil when it is wrong.
    func step(_ model: Model, _ command: Command, _ answer: Answer) -> Model?
    /// Says how a system differs from its model in a state, apart from its answers; nil: it does not. Called after each command that
    /// runs alone.
    func fault(of system: System, in model: Model) async -> String?
    /// Releases what a system has.
    func end(_ system: System) async
}

extension StateMachine {
    /// Nothing is wrong.
    public func fault(of system: System, in model: Model) async -> String? { nil }
    /// Nothing has to be released.
    public func end(_ system: System) async {}
}

/// Commands of a state machine, as choices: which they are, the states say in which they are run.
public struct CommandProgram: Sendable, CustomStringConvertible {
    let prefix: [[UInt64]]
    let branches: [[[UInt64]]]

    /// How many there are.
    public var count: Int { prefix.count + branches.reduce(0) { $0 + $1.count } }
    /// In words.
    public var description: String {
        "\(prefix.count) commands"
            + (branches.isEmpty ? "" : ", and \(branches.map(\.count)) at the same time")
    }

    /// - Parameters:
    ///   - count: of those that come one after another.
    ///   - branches: how many tasks run commands at the same time, after that; 0: none.
    ///   - each: of the commands of a branch.
    /// - Precondition: at most 64 branches, since all may overlap.
    public static func all(
        count: ClosedRange<Int> = 0...20, branches: Int = 0, each: ClosedRange<Int> = 0...5
    ) -> Generator<CommandProgram> {
        demand(
            (0...64).contains(branches), "CommandProgram.all: there may be 0 to 64 branches, not \(branches)")
        let command = Generator<[UInt64]> { source in (0..<6).map { _ in source.draw(below: 1 << 16) } }
        let (prefix, branch) = (command.array(count: count), command.array(count: each))
        return Generator { source in
            let first = try prefix.value(from: &source)
            return CommandProgram(
                prefix: first, branches: try (0..<branches).map { _ in try branch.value(from: &source) })
        }
    }
}

/// Runs commands on a new system of a state machine, and compares its answers with the model's.
///
/// Commands that come at the same time are chosen for the state in which the branches part, run in tasks, and judged by
/// ``isLinearizable(_:from:step:)``: a command that another one makes impossible has an answer that says so.
///
/// - Returns: what is wrong, with all commands and answers up to there; nil: nothing.
public func checkCommands<Machine: StateMachine>(_ commands: CommandProgram, of machine: Machine) async
    -> String?
{
    let system: Machine.System
    do { system = try await machine.makeSystem() } catch { return "no system could be made: \(error)" }
    let reason = await compare(machine, system, commands)
    await machine.end(system)
    return reason
}

private func compare<Machine: StateMachine>(
    _ machine: Machine, _ system: Machine.System, _ commands: CommandProgram
) async -> String? {
    var (model, log) = (machine.initial, [String]())
    func reason(_ sentence: String) -> String { (log + [sentence]).joined(separator: "\n") }

    if let fault = await machine.fault(of: system, in: model) { return reason("at the beginning: \(fault)") }
    for choices in commands.prefix {
        guard let command = chosen(by: choices, machine, model) else { continue }
        let answer = await machine.run(command, on: system)
        log.append("\(command) = \(answer)")
        guard let next = machine.step(model, command, answer) else {
            return reason("that is not the answer in the state \(model)")
        }
        model = next
        if let fault = await machine.fault(of: system, in: model) {
            return reason("in the state \(model): \(fault)")
        }
    }

    let parted = model
    let branches = commands.branches.map { branch in branch.compactMap { chosen(by: $0, machine, parted) } }
    guard branches.contains(where: { !$0.isEmpty }) else { return nil }
    let history = History<Machine.Command, Machine.Answer>(
        threads: branches.count, callsPerThread: max(1, branches.map(\.count).max() ?? 1))
    await withTaskGroup(of: Void.self) { group in
        for (number, branch) in branches.enumerated() {
            group.addTask {
                for command in branch {
                    _ = await history.record(on: number, command) { await machine.run(command, on: system) }
                }
            }
        }
    }
    guard let failure = linearizabilityFailure(of: history.calls, from: parted, step: machine.step) else {
        return nil
    }
    log.append("at the same time, in the state \(parted):")
    return reason(failure.description)
}

/// - Returns: nil: the state has no such command.
private func chosen<Machine: StateMachine>(
    by choices: [UInt64], _ machine: Machine, _ model: Machine.Model
) -> Machine.Command? {
    var source = Source(remainders: choices)
    return try? machine.commands(in: model).value(from: &source)
}
