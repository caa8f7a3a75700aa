// LiveValue.swift - a current value, and who hears of its changes.
//
// Invariants:
//   I1  a change and the notifications of it are one step under the lock, so that each observer hears of all changes after
//       the one it began with, in their order.
//   I2  dependents are told of each change, by the thread that made it and before `set` returns, under no lock. Each reads
//       the value again, so that it does not matter in which order two of them are told.

import CompositeOperationsBasics
@_spi(Faces) public import Runs
import Synchronization

/// A follower of live values, which is told at once.
protocol Dependent: AnyObject, Sendable {
    func sourceHasChanged()
}

/// A current value and its changes.
///
/// Usable from any thread. `set`, `swap` and `modify` are atomic, and each is one notification, in the order of the changes.
/// No code of yours runs under a lock, but that of ``modify(_:)``.
public final class LiveValue<Value: Sendable>: Sendable {
    private let source: any Source<Value>
    private let instance = Instance(.values)

    private init(_ source: any Source<Value>) { self.source = source }

    /// Creates a value of its own.
    public convenience init(_ initial: Value) { self.init(Cell(initial)) }

    /// The value now.
    ///
    /// - Complexity: O(1); of a derived value, that of the functions that derive it.
    public var value: Value { source.value }

    /// Changes it.
    ///
    /// - Precondition: it is no derived value: that stops the process.
    public func set(_ value: Value) { swap(value) }

    /// Changes it.
    ///
    /// - Returns: what it was until now.
    /// - Precondition: it is no derived value: that stops the process.
    @discardableResult public func swap(_ value: Value) -> Value {
        modify { current in
            let before = current
            current = value
            return before
        }
    }

    /// Changes it in one step.
    ///
    /// - Parameter change: runs under the lock of this value: to use that in it stops the process.
    /// - Returns: what `change` returns.
    /// - Throws: what `change` throws; the value is what it was, and nobody is told.
    /// - Precondition: it is no derived value: that stops the process.
    @discardableResult public func modify<R>(_ change: (inout Value) throws -> R) rethrows -> R {
        guard let cell = source as? Cell<Value> else {
            fatalError("LiveValue: a derived value can't be changed; change the one that it is derived from")
        }
        return try cell.modify(change)
    }

    /// Calls `body` with the value now, and after each change with what it is then.
    ///
    /// - Parameters:
    ///   - delivery: where. In place, one thread at a time calls it: it may be called after `set` has returned, when another
    ///     thread is at it.
    ///   - body: may use this value, and change it: it is told of that next.
    /// - Returns: ends the calls, when it is cancelled or released.
    public func observe(on delivery: Delivery = .inline, _ body: @escaping @Sendable (Value) -> Void)
        -> Subscription
    {
        let observer = Observer(Mailbox(delivery), body)
        let stop = source.observe(observer)
        observer.mailbox.deliver()
        return Subscription {
            observer.cancel()
            stop()
        }
    }

    /// The current value, then its changes; ends with this value, or, when this one is derived, with that which it is derived
    /// from. All elements are kept until they are read.
    public var values: AsyncStream<Value> {
        AsyncStream { continuation in
            // The stream holds the observer, and not this value.
            let observer = Observer<Value>(Mailbox(.inline), onEnd: { continuation.finish() }) { value in
                continuation.yield(value)
            }
            let stop = source.observe(observer)
            continuation.onTermination = { _ in
                observer.cancel()
                stop()
            }
            observer.mailbox.deliver()
        }
    }

    /// A value that is derived from this one, whenever it is read: both always agree.
    ///
    /// - Parameter transform: called on each read and for each observer, on any thread, under no lock.
    public func map<T: Sendable>(_ transform: @escaping @Sendable (Value) -> T) -> LiveValue<T> {
        LiveValue<T>(Derived(source, transform))
    }

    /// Tells `dependent` of each change, as long as it lives.
    func add(_ dependent: any Dependent) { source.add(dependent) }
}

/// Where a live value has its value from.
private protocol Source<Value>: AnyObject, Sendable {
    associatedtype Value: Sendable
    var value: Value { get }
    /// - Returns: ends it.
    func observe(_ observer: Observer<Value>) -> @Sendable () -> Void
    func add(_ dependent: any Dependent)
}

private final class Derived<Base: Sendable, Value: Sendable>: Source {
    private let base: any Source<Base>
    private let transform: @Sendable (Base) -> Value

    init(_ base: any Source<Base>, _ transform: @escaping @Sendable (Base) -> Value) {
        self.base = base
        self.transform = transform
    }

    var value: Value { transform(base.value) }

    func observe(_ observer: Observer<Value>) -> @Sendable () -> Void {
        let transform = transform
        return base.observe(
            Observer(observer.mailbox, onEnd: { observer.end() }) { observer.tell(transform($0)) })
    }

    func add(_ dependent: any Dependent) { base.add(dependent) }
}

private final class Cell<Value: Sendable>: Source, @unchecked Sendable {
    // Unchecked, and so is their exclusivity: the variables are used under `lock` alone. Not one `Guarded` value, which would be
    // of a generic type of its own, to be looked up at each use.
    private struct WeakDependent: Sendable { weak let dependent: (any Dependent)? }

    private let lock = WordLock()
    @exclusivity(unchecked) private var current: Value
    @exclusivity(unchecked) private var observers = Registrations<Observer<Value>>()
    @exclusivity(unchecked) private var dependents: [WeakDependent] = []
    /// So many dependents, and those that are gone are taken out.
    @exclusivity(unchecked) private var most = 8
    /// The thread that runs the closure of ``modify(_:)``; 0: none does.
    private let changing = Atomic<UInt>(0)

    init(_ value: Value) { current = value }

    deinit {
        // By the thread that lets go of it; nothing can change any more.
        for observer in observers.all {
            observer.mailbox.append { observer.end() }
            observer.mailbox.deliver()
        }
    }

    @inline(__always)
    private func locked<Answer>(_ body: () throws -> Answer) rethrows -> Answer {
        let key = UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
        lock.lock(key)
        defer { lock.unlock(key) }
        return try body()
    }

    /// Stops a thread that would wait for itself.
    @inline(__always)
    private func check() {
        let thread = changing.load(ordering: .relaxed)
        if thread == 0 { return }
        demand(
            thread != ThreadValue.thread, "LiveValue.modify: its closure uses the value that it changes")
    }

    var value: Value {
        check()
        return locked { current }
    }

    func modify<R>(_ change: (inout Value) throws -> R) rethrows -> R {
        check()
        var discarded: Value?
        defer { withExtendedLifetime(discarded) {} }  // under no lock
        let (answer, before, observers, dependents) = try locked {
            () throws -> (R, Value, Registrations<Observer<Value>>, [WeakDependent]) in
            let before = current  // released later: a value may be an object with a user's `deinit`
            let answer: R
            changing.store(ThreadValue.thread, ordering: .relaxed)
            defer { changing.store(0, ordering: .relaxed) }
            do { answer = try change(&current) } catch {
                discarded = current
                current = before
                throw error
            }
            let value = current
            self.observers.forEach { observer in observer.mailbox.append { observer.tell(value) } }
            return (answer, before, self.observers, self.dependents)
        }
        for dependent in dependents { dependent.dependent?.sourceHasChanged() }
        observers.forEach { $0.mailbox.deliver() }
        withExtendedLifetime(before) {}
        return answer
    }

    func observe(_ observer: Observer<Value>) -> @Sendable () -> Void {
        check()
        locked {
            observers.append(observer, observer.registration)
            let value = current
            observer.mailbox.append { observer.tell(value) }
        }
        return { [weak self] in
            guard let self else { return }
            check()
            let removed = locked { observers.remove(observer.registration) }
            withExtendedLifetime(removed) {}  // released under no lock
        }
    }

    func add(_ dependent: any Dependent) {
        check()
        let others = locked { () -> [(any Dependent)?] in
            dependents.append(WeakDependent(dependent: dependent))
            guard dependents.count > most else { return [] }
            let others = dependents.map(\.dependent)
            dependents = zip(dependents, others).filter { $1 != nil }.map { $0.0 }
            most = 2 * dependents.count
            return others
        }
        withExtendedLifetime(others) {}  // each may be the last reference: released under no lock
    }
}
