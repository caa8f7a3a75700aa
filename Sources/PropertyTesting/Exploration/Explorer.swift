// Explorer.swift - runs the steps of one schedule, each chosen among those that could be next.
//
// Everything happens on the thread that explores: it runs a job up to where its task waits, and what becomes ready
// meanwhile comes back by `enqueue`, or by the hooks of the runtime (for new tasks without a preference of executor, which
// are adopted, and for the main actor). Only `isOutside` and `cameFromOutside` are written by other threads.

import CTaskHooks
import CompositeOperationsBasics
import Glibc
import Synchronization

/// Decides which step is next.
protocol Chooser {
    /// The next one of the alternatives, less than `count`, which is at least 2.
    mutating func choose(among count: Int, in explorer: Explorer) -> Int
}

/// How a schedule ended.
enum Ending: Equatable {
    case ended
    case threw(String)
    case stuck
    case endless
}

/// Runs schedules, one after the other; on one thread at a time.
///
/// Unchecked: everything but what is said above belongs to the thread that explores, which `isHere` tells.
final class Explorer: TaskExecutor, @unchecked Sendable {
    /// A step that could be next.
    struct Ready {
        let job: UnownedJob
        /// The task, by the runtime's number; of an actor's job, the task whose step enqueued it.
        let task: UInt64
        /// The how many-th it was of those that became ready.
        let number: Int
        /// After how many steps it became ready.
        let since: Int
        /// Whether it was the usual next step once, and another one was chosen.
        var isPassedOver = false
        /// Whether it is a task's own, and not an actor's.
        let isOfTask: Bool
        /// Whether the last step's task goes on with it.
        let isContinuation: Bool
        /// Whether its task has yielded.
        let hasYielded: Bool
        var place = Place.anywhere
    }

    /// By which way it came.
    enum Place {
        /// The task prefers this executor, or an actor of such a task.
        case anywhere
        /// The same of a task that was adopted.
        case adopted
        /// By the runtime's hook: the task prefers none, and is adopted if it is new.
        case byDefault
        case mainActor
        /// When time has passed.
        case sleep
    }

    /// A step that could be next once time has passed.
    struct Sleeper {
        let ready: Ready
        let deadline: Int64
    }

    // Unchecked exclusivity: all is used by the thread that explores, and nothing is run inside of an access.

    /// The ready steps, the newest last.
    @exclusivity(unchecked) private(set) var ready: ContiguousArray<Ready> = []
    /// The earliest first; of the same time, in the order in which they came.
    @exclusivity(unchecked) private var sleepers: ContiguousArray<Sleeper> = []
    /// The time of the schedule, in nanoseconds since its beginning: it passes when a sleeper goes on.
    @exclusivity(unchecked) private var now: Int64 = 0
    /// How long tasks are about to sleep, where that is known.
    @exclusivity(unchecked) private var delays: [UInt64: Duration] = [:]
    /// Whether a task slept in the schedule.
    @exclusivity(unchecked) private(set) var hasSleepers = false
    /// Whether the schedule had more steps than the limit.
    @exclusivity(unchecked) private(set) var hasGivenUp = false
    /// How many steps were run.
    @exclusivity(unchecked) private(set) var steps = 0
    /// The task of the running step.
    @exclusivity(unchecked) private var task: UInt64 = 0
    /// Where in `ready` the usual next step is, at the decision that is open.
    @exclusivity(unchecked) private var usual = 0
    /// Whether the running step yields, so that others come first.
    @exclusivity(unchecked) private var isYielding = false
    /// The tasks that have come to a point in the running step: they are ready when it has ended.
    @exclusivity(unchecked) private var atPoints: [UnsafeContinuation<Void, Never>] = []
    /// How many became ready.
    @exclusivity(unchecked) private var numberReady = 0
    /// How many steps shared something with other tasks: see ``Sharing``.
    @exclusivity(unchecked) private(set) var sharedSteps = 0
    /// nil: nobody asks.
    @exclusivity(unchecked) private var sharing: SharingOfStep?
    /// The choice at each decision, and the number of alternatives.
    @exclusivity(unchecked) private(set) var choices: ContiguousArray<UInt16> = []
    @exclusivity(unchecked) private(set) var counts: ContiguousArray<UInt16> = []
    /// Whether the chosen step shared nothing.
    @exclusivity(unchecked) private(set) var wasLocal: ContiguousArray<Bool> = []

    /// The steps, where they are recorded.
    private(set) var recorded: [ExploredStep] = []
    private var isRecording = false
    private var numbers: [UInt64: Int] = [:]

    private let isOutside = Atomic(false)
    private let cameFromOutside = Gate()
    /// For how long a schedule in which nothing can go on is given for another thread to make a task ready.
    private var patienceWithOthers: Duration
    private var functions: [UnsafeRawPointer: String] = [:]
    private var mainActor: MainActorsPlace?
    private let taker = UnsafeMutablePointer<task_hooks_taker>.allocate(capacity: 1)

    /// So many steps a schedule may have.
    let limit: Int

    /// An explorer that is never destroyed: tasks that are left over hold it without owning it, and may be made ready at any time.
    static func kept(limit: Int, patienceWithOthers: Duration, sharing: Sharing) -> Explorer {
        let explorer = Explorer(limit: limit, patienceWithOthers: patienceWithOthers)
        if sharing == .actors { explorer.sharing = SharingOfStep() }
        all.withLock { $0.append(explorer) }
        return explorer
    }

    private static let all = Locked<[Explorer]>([])

    private init(limit: Int, patienceWithOthers: Duration) {
        self.limit = min(max(1, limit), 100_000_000)
        self.patienceWithOthers = patienceWithOthers
        demand(task_hooks_install(), "explore: the runtime of Swift has no hooks for its executors")
        let mainActor = MainActorsPlace(self)
        self.mainActor = mainActor
        Adoption.learn()
        taker.initialize(
            to: task_hooks_taker(
                context: Unmanaged.passUnretained(self).toOpaque(),
                take: { context, job in
                    Unmanaged<Explorer>.fromOpaque(context!).takeUnretainedValue()
                        .append(unsafeBitCast(job!, to: UnownedJob.self), in: .byDefault)
                },
                main_executor: unsafeBitCast(
                    mainActor.asUnownedSerialExecutor(), to: task_hooks_executor.self),
                task_executor: unsafeBitCast(
                    AdoptedTasksPlace.ofAll.asUnownedTaskExecutor(), to: task_hooks_executor.self)))
    }

    // MARK: - What becomes ready

    func enqueue(_ job: consuming ExecutorJob) { append(UnownedJob(job)) }

    func append(_ job: UnownedJob, in place: Place = .anywhere) {
        guard isHere else { return takeFromOutside(job) }
        ready.append(entry(for: job, in: place))
    }

    private func entry(for job: UnownedJob, in place: Place) -> Ready {
        let number = task_hooks_task_of(unsafeBitCast(job, to: UnsafeMutableRawPointer.self))
        sharing?.becomesReady(number, in: place)
        numberReady += 1
        return Ready(
            job: job, task: number == 0 ? task : number, number: numberReady, since: steps,
            isOfTask: number != 0,
            isContinuation: !isYielding && (number == 0 || number == task),
            hasYielded: isYielding, place: place)
    }

    /// The time since the schedule began, for the running step.
    func readTime() -> Duration {
        sharing?.readsTime()
        return .nanoseconds(now)
    }

    /// The running task is about to sleep, for exactly so long; nil: it has.
    func expectSleep(for delay: Duration?) { delays[task] = delay }

    /// - Parameter delay: as the runtime computes it, by moments of clocks that go on: rounded up to three digits, and to a
    ///   hundredth of a second, because two sleeps of the same length must be of the same length.
    func sleep(_ job: UnownedJob, for delay: Duration) {
        guard isHere else { return takeFromOutside(job) }
        let exact = delays.removeValue(forKey: task)
        let (seconds, attoseconds) = max(.zero, min(exact ?? delay, .seconds(1_000_000_000))).components
        let nanoseconds = seconds * 1_000_000_000 + attoseconds / 1_000_000_000
        var quantum: Int64 = exact == nil ? 10_000_000 : 1
        while exact == nil, nanoseconds / 1_000 >= quantum { quantum *= 10 }
        let quanta = max(1, (nanoseconds + quantum - 1) / quantum)
        let deadline = now.addingReportingOverflow(quanta * quantum)
        let sleeper = Sleeper(
            ready: entry(for: job, in: .sleep), deadline: deadline.overflow ? .max : deadline.partialValue)
        let place = sleepers.firstIndex { $0.deadline > sleeper.deadline } ?? sleepers.endIndex
        sleepers.insert(sleeper, at: place)
        hasSleepers = true
    }

    private var isHere: Bool {
        task_hooks_get_taker()?.pointee.context == Unmanaged.passUnretained(self).toOpaque()
    }

    /// Another thread has made a task ready. The task cannot go on: the schedule is not what was explored any more.
    private func takeFromOutside(_ job: UnownedJob) {
        isOutside.store(true, ordering: .releasing)
        cameFromOutside.open()
    }

    /// Whether that happened.
    var hasOutside: Bool { isOutside.load(ordering: .acquiring) }

    /// Whether that happens soon, where nothing can go on. Only the first time does this wait.
    func waitsForOutside() -> Bool {
        defer { patienceWithOthers = .zero }
        return patienceWithOthers == .zero ? hasOutside : cameFromOutside.wait(timeout: patienceWithOthers)
    }

    // MARK: - One schedule

    /// Runs a schedule of `body` to its end, on the thread that calls. Tasks that are left over run as far as they go; where
    /// the body has not ended, it is cancelled before.
    func run<C: Chooser>(
        _ chooser: inout C, recording: Bool = false, _ body: @escaping @Sendable () async throws -> Void
    ) -> Ending {
        clear(recording)
        let end = End()
        let outer = task_hooks_get_taker()
        task_hooks_set_taker(taker)
        defer { task_hooks_set_taker(outer) }
        let root = Task(executorPreference: self) {
            do {
                try await body()
                end.ending = .ended
            } catch {
                end.ending = .threw("threw \(error)")
            }
        }
        var ending = runSteps(&chooser, until: end)
        if ending == .endless {
            // Any order may put off for ever what would end it. The usual one does not.
            hasGivenUp = true
            ending = runInUsualOrder(until: end, atMost: 2 * limit)
        }
        if ending == .stuck || ending == .endless {
            isRecording = false
            root.cancel()
            _ = runInUsualOrder(until: end, atMost: 3 * limit)
            // An actor whose job is dropped would never serve anybody again.
            while let actor = ready.firstIndex(where: { !$0.isOfTask && !isYield($0.job) }) {
                run(ready.remove(at: actor))
            }
        }
        return ending
    }

    private func clear(_ recording: Bool) {
        ready.removeAll(keepingCapacity: true)
        sleepers.removeAll(keepingCapacity: true)
        choices.removeAll(keepingCapacity: true)
        counts.removeAll(keepingCapacity: true)
        wasLocal.removeAll(keepingCapacity: true)
        now = 0
        if !delays.isEmpty { delays = [:] }
        if !atPoints.isEmpty { atPoints = [] }
        hasSleepers = false
        hasGivenUp = false
        steps = 0
        numberReady = 0
        sharedSteps = 0
        if sharing != nil { sharing = SharingOfStep() }
        task = 0
        isRecording = recording
        if recording {
            recorded = []
            numbers = [:]
        }
    }

    /// Runs steps until there is none, or there were too many.
    private func runSteps<C: Chooser>(_ chooser: inout C, until end: End) -> Ending {
        while true {
            let count = alternatives()
            if count == 0 { return end.ending ?? .stuck }
            if steps >= limit { return .endless }
            var choice = 0
            if count > 1 {
                choice = chooser.choose(among: count, in: self)
                choices.append(UInt16(truncatingIfNeeded: choice))
                counts.append(UInt16(truncatingIfNeeded: count))
            }
            let sharedBefore = sharedSteps
            runStep(choice, among: count)
            if count > 1, sharing != nil { wasLocal.append(sharedSteps == sharedBefore) }
        }
    }

    /// Runs more steps, which are no decisions of the schedule, until there is none or there were so many.
    private func runInUsualOrder(until end: End, atMost most: Int) -> Ending {
        while steps < most {
            if alternatives() == 0 { return end.ending ?? .stuck }
            runStep(0)
        }
        return .endless
    }

    /// Looks for what could be next: what is ready, and what sleeps until the earliest moment.
    ///
    /// - Returns: how many steps.
    private func alternatives() -> Int {
        findUsual()
        var count = ready.count
        if let first = sleepers.first {
            var index = 0
            while index < sleepers.count, sleepers[index].deadline == first.deadline { index += 1 }
            count += index
        }
        return min(count, Int(UInt16.max))
    }

    /// So many steps another one may wait, unless choices say otherwise: else tasks that ask again and again whether something
    /// has happened would go on for ever.
    private static var patience: Int { 64 }

    /// The usual next step: that with which the last step's task goes on; else the one that has been ready for longest. One that
    /// was passed over comes when no other is ready: so one departure puts off a task behind a whole chain of others.
    private func findUsual() {
        guard let last = ready.last else { return }
        var (longest, oldest): (Int, Int?) = (0, nil)
        for place in ready.indices {
            if ready[place].since < ready[longest].since { longest = place }
            if oldest == nil, !ready[place].isPassedOver { oldest = place }
        }
        if steps - ready[longest].since > Self.patience {
            usual = longest
        } else if last.isContinuation, last.since == steps {
            usual = ready.count - 1
        } else {
            usual = oldest ?? longest
        }
    }

    /// Where in `ready` a choice is: the usual one, and then from the oldest to the newest.
    private func place(of choice: Int) -> Int {
        if choice == 0 { return usual }
        return choice <= usual ? choice - 1 : choice
    }

    /// Which step an alternative is: the same one in schedules that are the same up to here.
    func number(of choice: Int) -> Int {
        choice < ready.count ? ready[place(of: choice)].number : sleepers[choice - ready.count].ready.number
    }

    /// The task of an alternative.
    func task(of choice: Int) -> UInt64 {
        choice < ready.count ? ready[place(of: choice)].task : sleepers[choice - ready.count].ready.task
    }

    /// Whether the task of an alternative has yielded.
    func hasYielded(_ choice: Int) -> Bool { choice < ready.count && ready[place(of: choice)].hasYielded }

    /// Whether an alternative is that time passes.
    func isSleeper(_ choice: Int) -> Bool { choice >= ready.count }

    private func runStep(_ choice: Int, among count: Int = 1) {
        let next: Ready
        if choice > 0, !ready.isEmpty { ready[usual].isPassedOver = true }
        if choice < ready.count {
            next = ready.remove(at: place(of: choice))
        } else {
            let sleeper = sleepers.remove(at: choice - ready.count)
            now = max(now, sleeper.deadline)
            next = sleeper.ready
        }
        steps += 1
        task = next.task
        sharing?.begins(next)
        if isRecording { record(next, choice, count) }
        run(next)
        while let more = takeWhatFollows(next) {
            isYielding = isYield(more.job)
            run(more)
            isYielding = false
        }
        while !atPoints.isEmpty { atPoints.removeFirst().resume() }
        if sharing?.ends() == true { sharedSteps += 1 }
    }

    private func run(_ next: Ready) {
        switch next.place {
        case .mainActor:
            next.job.runSynchronously(
                isolatedTo: mainActor!.asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
        case .byDefault:
            if next.isOfTask {
                _ = task_hooks_adopt(unsafeBitCast(next.job, to: UnsafeMutableRawPointer.self))
            }
            fallthrough
        case .adopted: next.job.runSynchronously(on: AdoptedTasksPlace.ofAll.asUnownedTaskExecutor())
        case .anywhere, .sleep: next.job.runSynchronously(on: asUnownedTaskExecutor())
        }
    }

    /// A job that only makes a task ready belongs to the step before it: the job of a yield; and the task that the library has
    /// for a sleep.
    private func takeWhatFollows(_ step: Ready) -> Ready? {
        guard let newest = ready.last else { return nil }
        let follows = step.place == .sleep && newest.task == step.task || isYield(newest.job)
        return follows ? ready.removeLast() : nil
    }

    private func isYield(_ job: UnownedJob) -> Bool {
        task_hooks_is_yield(unsafeBitCast(job, to: UnsafeMutableRawPointer.self))
    }
}

// MARK: - What is recorded

extension Explorer {
    private func record(_ next: Ready, _ choice: Int, _ count: Int) {
        let job = unsafeBitCast(next.job, to: UnsafeMutableRawPointer.self)
        let isTask = task_hooks_task_of(job) != 0
        let kind: ExploredStep.Kind =
            switch next.place {
            case .anywhere, .adopted, .byDefault: isTask ? .task : .actor
            case .mainActor: .mainActor
            case .sleep: .sleep(until: .nanoseconds(now))
            }
        let number = numbers[next.task] ?? numbers.count + 1
        numbers[next.task] = number
        recorded.append(
            ExploredStep(
                kind: kind, task: number,
                function: isTask ? function(at: task_hooks_resume_address(job)) : nil,
                alternatives: count, choice: choice))
    }

    /// The name of the function at an address, without what a reader need not know.
    private func function(at address: UnsafeRawPointer?) -> String? {
        guard let address else { return nil }
        if let known = functions[address] { return known.isEmpty ? nil : known }
        var name = ""
        if let text = task_hooks_function_at(address) {
            name = shortName(of: String(cString: text))
            free(text)
        }
        functions[address] = name
        return name.isEmpty ? nil : name
    }

    /// The running step has come to a point.
    func stop(at point: StaticString, _ task: UnsafeContinuation<Void, Never>) {
        if isRecording, !recorded.isEmpty { recorded[recorded.count - 1].points.append("\(point)") }
        atPoints.append(task)
    }

    /// The explorer whose step runs on this thread.
    static var current: Explorer? {
        guard let taker = task_hooks_get_taker() else { return nil }
        return Unmanaged<Explorer>.fromOpaque(taker.pointee.context).takeUnretainedValue()
    }
}

/// The part of a function's demangled name that a reader wants to see: the names, without the types.
func shortName(of function: String) -> String {
    let name = function.split(separator: " resume partial function for ").last.map { String($0) } ?? ""
    let library = "static (extension in Swift):Swift.Task<"
    for function in ["withUnsafeContinuation", "withCheckedContinuation"] where name.hasPrefix("\(function)<")
    {
        return function
    }
    if name.contains(library) { return name.contains("_sleep<") ? "Task.sleep" : "Task.yield" }
    let parts = name.split(separator: " in ").filter { !$0.hasPrefix("static (extension") }.map {
        part -> Substring in
        if part.hasPrefix("closure #") || part.hasPrefix("implicit closure #") {
            return part.prefix { $0 != "(" && $0 != "@" }
        }
        return part.split(separator: " async").first ?? part
    }
    return parts.map { $0.split(separator: " ").joined(separator: " ") }.joined(separator: " in ")
        .replacing("Swift.", with: "")
}

/// How the body ended.
///
/// Unchecked: the body's task, which writes it, runs on the thread that explores, which reads it.
private final class End: @unchecked Sendable {
    var ending: Ending?
}

/// Where the main actor's steps are enqueued.
///
/// Unchecked: it has nothing but its explorer, which lives for ever.
final class MainActorsPlace: SerialExecutor, @unchecked Sendable {
    unowned let explorer: Explorer
    init(_ explorer: Explorer) { self.explorer = explorer }
    func enqueue(_ job: consuming ExecutorJob) { explorer.append(UnownedJob(job), in: .mainActor) }
}
