// DeliveryPlace.swift - whether the calling code is where something is to be delivered, and how to get there.

internal import Runs

extension Delivery {
    /// Whether the calling code may deliver at once. False of an actor other than the main one, whose executor does not say.
    var isHere: Bool {
        switch self {
        case .inline: true
        case .main: MainQueue.isCurrent
        case .isolated(let actor): actor === MainActor.shared && MainQueue.isCurrent
        case .target(let target): target.isCurrent
        }
    }

    /// Has a piece of work run there, later; on the built-in scheduler, when the target gives it up. What the calling task knows
    /// is not for that.
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
