// StateMachine.swift - tests of stateful systems against a model: commands one after another, and concurrently.

import CompositeOperationsBasics

/// A system with a state, and a model of it: the commands that it takes, and the correct answers.
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
    /// The state, as far as answers reveal it.
    associatedtype Model: Hashable & Sendable
    /// The system under test.
    associatedtype System: Sendable
    /// The commands that it takes.
    associatedtype Command: Sendable
    /// Its answer to a command.
    associatedtype Answer: Sendable

    /// The state in which a system begins.
    var initial: Model { get }
    /// Creates a system for one case.
    func makeSystem() async throws -> System
    /// The commands that a state allows. To express a precondition, leave a command out.
    func commands(in model: Model) -> Generator<Command>
    /// Runs a command on the system.
    func run(_ command: Command, on system: System) async -> Answer
    /// The state after a command, if the answer is right; nil if it is wrong.
    func step(_ model: Model, _ command: Command, _ answer: Answer) -> Model?
    /// Describes how a system differs from its model in ways other than its answers; nil if it does not. Called after each command
    /// that runs alone.
    func fault(of system: System, in model: Model) async -> String?
    /// Releases the resources of a system.
    func end(_ system: System) async
}

extension StateMachine {
    /// Returns nil.
    public func fault(of system: System, in model: Model) async -> String? { nil }
    /// Does nothing.
    public func end(_ system: System) async {}
}

/// Commands of a state machine, as choices: the state in which a choice is run decides which command it is.
public struct CommandProgram: Sendable, CustomStringConvertible {
    let prefix: [[UInt64]]
    let branches: [[[UInt64]]]

    /// The number of commands.
    public var count: Int { prefix.count + branches.reduce(0) { $0 + $1.count } }
    /// The numbers of commands, in words.
    public var description: String {
        "\(prefix.count) commands"
            + (branches.isEmpty ? "" : ", and \(branches.map(\.count)) at the same time")
    }

    /// - Parameters:
    ///   - count: the number of commands that run one after another.
    ///   - branches: the number of tasks that run commands concurrently after that; 0: none.
    ///   - each: the number of commands in a branch.
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
/// Concurrent commands are chosen for the state in which the branches fork, run in tasks, and checked by
/// ``isLinearizable(_:from:step:)``. If a concurrent command can make a command impossible, that command needs an answer that says
/// so.
///
/// - Returns: a description of the fault, with all commands and answers up to it; nil if there is none.
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

/// - Returns: nil if the state has no such command.
private func chosen<Machine: StateMachine>(
    by choices: [UInt64], _ machine: Machine, _ model: Machine.Model
) -> Machine.Command? {
    var source = Source(remainders: choices)
    return try? machine.commands(in: model).value(from: &source)
}
