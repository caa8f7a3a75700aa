// Explorer.swift - runs the steps of one schedule, each chosen among the possible next steps.
//
// Everything happens on the exploring thread: it runs a job until its task suspends, and jobs that become ready meanwhile arrive
// through `enqueue`, or through the hooks of the runtime (for new tasks without an executor preference, which are adopted, and
// for the main actor). Only `isOutside` and `cameFromOutside` are written by other threads.

import CTaskHooks
import CompositeOperationsBasics
import Glibc
import Synchronization

/// Decides which step is next.
protocol Chooser {
    /// The index of the next step among the alternatives; `count` is at least 2.
    mutating func choose(among count: Int, in explorer: Explorer) -> Int
}

/// How a schedule ended.
enum Ending: Equatable {
    case ended
    case threw(String)
    case stuck
    case endless
}

/// Runs schedules one after another, on one thread at a time.
///
/// Unchecked: except for the fields named above, everything belongs to the exploring thread, which `isHere` identifies.
final class Explorer: TaskExecutor, @unchecked Sendable {
    /// A step that could be next.
    struct Ready {
        let job: UnownedJob
        /// The task, by the runtime's number; for an actor's job, the task whose step enqueued it.
        let task: UInt64
        /// Its number in the order in which steps became ready.
        let number: Int
        /// The number of steps that had run before it became ready.
        let since: Int
        /// Whether it was the usual next step once, and another step was chosen.
        var isPassedOver = false
        /// Whether the job is a task's, not an actor's.
        let isOfTask: Bool
        /// Whether it continues the last step's task.
        let isContinuation: Bool
        /// Whether its task has yielded.
        let hasYielded: Bool
        var place = Place.anywhere
    }

    /// How a job arrived.
    enum Place {
        /// From a task that prefers this executor, or from an actor of such a task.
        case anywhere
        /// The same, from a task that was adopted.
        case adopted
        /// By the runtime's hook: the task has no preference, and is adopted if it is new.
        case byDefault
        case mainActor
        /// After a sleep: time has passed.
        case sleep
    }

    /// A step that can be next once time has passed.
    struct Sleeper {
        let ready: Ready
        let deadline: Int64
    }

    // Unchecked exclusivity: all fields are used by the exploring thread, and no code runs inside an access.

    /// The ready steps, the newest last.
    @exclusivity(unchecked) private(set) var ready: ContiguousArray<Ready> = []
    /// Earliest first; at equal times in the order of arrival.
    @exclusivity(unchecked) private var sleepers: ContiguousArray<Sleeper> = []
    /// The time of the schedule, in nanoseconds since its beginning: it passes when a sleeper continues.
    @exclusivity(unchecked) private var now: Int64 = 0
    /// The durations for which tasks are about to sleep, where known.
    @exclusivity(unchecked) private var delays: [UInt64: Duration] = [:]
    /// Whether a task slept in the schedule.
    @exclusivity(unchecked) private(set) var hasSleepers = false
    /// Whether the schedule had more steps than the limit.
    @exclusivity(unchecked) private(set) var hasGivenUp = false
    /// The number of steps that were run.
    @exclusivity(unchecked) private(set) var steps = 0
    /// The task of the running step.
    @exclusivity(unchecked) private var task: UInt64 = 0
    /// The index in `ready` of the usual next step, at the current decision.
    @exclusivity(unchecked) private var usual = 0
    /// Whether the running step yields, so other steps come first.
    @exclusivity(unchecked) private var isYielding = false
    /// The tasks that have reached an exploration point in the running step: they become ready when the step has ended.
    @exclusivity(unchecked) private var atPoints: [UnsafeContinuation<Void, Never>] = []
    /// The number of steps that became ready.
    @exclusivity(unchecked) private var numberReady = 0
    /// The number of steps that shared something with other tasks: see ``Sharing``.
    @exclusivity(unchecked) private(set) var sharedSteps = 0
    /// The running step's sharing; nil: not tracked.
    @exclusivity(unchecked) private var sharing: SharingOfStep?
    /// The choice at each decision, and the number of alternatives.
    @exclusivity(unchecked) private(set) var choices: ContiguousArray<UInt16> = []
    @exclusivity(unchecked) private(set) var counts: ContiguousArray<UInt16> = []
    /// Whether the chosen step shared nothing.
    @exclusivity(unchecked) private(set) var wasLocal: ContiguousArray<Bool> = []

    /// The steps, if they are recorded.
    private(set) var recorded: [ExploredStep] = []
    private var isRecording = false
    private var numbers: [UInt64: Int] = [:]

    private let isOutside = Atomic(false)
    private let cameFromOutside = Gate()
    /// How long to wait, in a schedule in which nothing can continue, for another thread to make a task ready.
    private var patienceWithOthers: Duration
    private var functions: [UnsafeRawPointer: String] = [:]
    private var mainActor: MainActorsPlace?
    private let taker = UnsafeMutablePointer<task_hooks_taker>.allocate(capacity: 1)

    /// The maximum number of steps of a schedule.
    let limit: Int

    /// An explorer that is never deallocated: leftover tasks refer to it without owning it, and may become ready at any time.
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

    // MARK: - Ready jobs

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

    /// The time since the schedule began, as read by the running step.
    func readTime() -> Duration {
        sharing?.readsTime()
        return .nanoseconds(now)
    }

    /// The running task is about to sleep for exactly this long; nil: it has slept.
    func expectSleep(for delay: Duration?) { delays[task] = delay }

    /// - Parameter delay: as the runtime computes it, from readings of running clocks. Rounded up to three digits, and to a
    ///   hundredth of a second, because two sleeps of the same nominal length must be equal.
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

    /// Another thread has made a task ready. The task cannot continue: the schedule is no longer the explored one.
    private func takeFromOutside(_ job: UnownedJob) {
        isOutside.store(true, ordering: .releasing)
        cameFromOutside.open()
    }

    /// Whether another thread made a task ready.
    var hasOutside: Bool { isOutside.load(ordering: .acquiring) }

    /// Whether another thread makes a task ready soon, when nothing can continue. Only the first call waits.
    func waitsForOutside() -> Bool {
        defer { patienceWithOthers = .zero }
        return patienceWithOthers == .zero ? hasOutside : cameFromOutside.wait(timeout: patienceWithOthers)
    }

    // MARK: - One schedule

    /// Runs a schedule of `body` to its end, on the calling thread. Leftover tasks run as far as they can; if the body has not
    /// ended, it is cancelled first.
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
            // The chosen order may postpone for ever the step that would end the schedule. The usual order does not.
            hasGivenUp = true
            ending = runInUsualOrder(until: end, atMost: 2 * limit)
        }
        if ending == .stuck || ending == .endless {
            isRecording = false
            root.cancel()
            _ = runInUsualOrder(until: end, atMost: 3 * limit)
            // An actor whose job is dropped would never run a job again.
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

    /// Runs steps until none is left, or there were too many.
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

    /// Runs more steps, which are not decisions of the schedule, until none is left or `most` is reached.
    private func runInUsualOrder(until end: End, atMost most: Int) -> Ending {
        while steps < most {
            if alternatives() == 0 { return end.ending ?? .stuck }
            runStep(0)
        }
        return .endless
    }

    /// Finds the possible next steps: the ready ones, and those that sleep until the earliest deadline.
    ///
    /// - Returns: the number of possible steps.
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

    /// The maximum number of steps for which a ready step waits, unless a choice postpones it: without this limit, tasks that
    /// poll would run for ever.
    private static var patience: Int { 64 }

    /// Finds the usual next step: the one that continues the last step's task; otherwise the step that has been ready longest. A
    /// step that was passed over runs only when no other is ready, so one departure postpones a task behind a whole chain of
    /// others.
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

    /// The index of a choice in `ready`: the usual step first, and then oldest to newest.
    private func place(of choice: Int) -> Int {
        if choice == 0 { return usual }
        return choice <= usual ? choice - 1 : choice
    }

    /// The number of an alternative's step; the same in schedules that are equal up to this decision.
    func number(of choice: Int) -> Int {
        choice < ready.count ? ready[place(of: choice)].number : sleepers[choice - ready.count].ready.number
    }

    /// The task of an alternative.
    func task(of choice: Int) -> UInt64 {
        choice < ready.count ? ready[place(of: choice)].task : sleepers[choice - ready.count].ready.task
    }

    /// Whether the task of an alternative has yielded.
    func hasYielded(_ choice: Int) -> Bool { choice < ready.count && ready[place(of: choice)].hasYielded }

    /// Whether an alternative lets time pass.
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

    /// A job that only makes a task ready belongs to the preceding step: the job of a yield, and the task that the library uses
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

// MARK: - Recording

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

    /// The short name of the function at an address.
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

    /// Called when the running step has reached an exploration point.
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

/// The readable part of a function's demangled name: the names, without the types.
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
/// Unchecked: the body's task, which writes it, runs on the exploring thread, which reads it.
private final class End: @unchecked Sendable {
    var ending: Ending?
}

/// The executor to which the main actor's steps are enqueued.
///
/// Unchecked: its only field is the explorer, which is never deallocated.
final class MainActorsPlace: SerialExecutor, @unchecked Sendable {
    unowned let explorer: Explorer
    init(_ explorer: Explorer) { self.explorer = explorer }
    func enqueue(_ job: consuming ExecutorJob) { explorer.append(UnownedJob(job), in: .mainActor) }
}
