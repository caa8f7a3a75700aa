// DeliveryPlace.swift - whether the caller is at a delivery's place, and how to get there.

internal import Runs

extension Delivery {
    /// Whether the caller may deliver at once. False for an actor other than the main actor, since its executor cannot tell.
    var isHere: Bool {
        switch self {
        case .inline: true
        case .main: MainQueue.isCurrent
        case .isolated(let actor): actor === MainActor.shared && MainQueue.isCurrent
        case .target(let target): target.isCurrent
        }
    }

    /// Runs a piece of work at the place, later; on the built-in scheduler if the target drops it. The work does not inherit the
    /// caller's task-local values.
    func perform(_ work: @escaping @Sendable () -> Void) {
        switch self {
        case .inline: work()
        case .main: Task.detached { @MainActor in work() }
        case .isolated(let actor): Task.detached { await Self.run(work, on: actor) }
        case .target(let target): ExecutionWork.run(on: target, work)
        }
    }

    private static func run(_ work: @Sendable () -> Void, on actor: isolated any Actor) { work() }
}
