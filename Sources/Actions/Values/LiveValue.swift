// LiveValue.swift - a current value, and the observers of its changes.
//
// Invariants:
//   I1  a change is made, and its notifications are appended, in one critical section, so each observer is notified of all
//       changes after its initial value, in order.
//   I2  dependents are notified of each change by the thread that made it, before `set` returns, under no lock. Each reads the
//       value again, so the order of two notifications does not matter.

import CompositeOperationsBasics
@_spi(Faces) public import Runs
import Synchronization

/// A follower of live values that is notified synchronously.
protocol Dependent: AnyObject, Sendable {
    func sourceHasChanged()
}

/// A current value and its changes.
///
/// Usable from any thread. `set`, `swap` and `modify` are atomic, and each causes one notification, in the order of the changes.
/// Of your code, only the closure of ``modify(_:)`` runs under a lock.
public final class LiveValue<Value: Sendable>: Sendable {
    private let source: any Source<Value>
    private let instance = Instance(.values)

    private init(_ source: any Source<Value>) { self.source = source }

    /// Creates an independent value.
    public convenience init(_ initial: Value) { self.init(Cell(initial)) }

    /// The current value.
    ///
    /// - Complexity: O(1); for a derived value, that of the transforms that derive it.
    public var value: Value { source.value }

    /// Sets the value.
    ///
    /// - Precondition: this is not a derived value: otherwise the process stops.
    public func set(_ value: Value) { swap(value) }

    /// Sets the value.
    ///
    /// - Returns: the former value.
    /// - Precondition: this is not a derived value: otherwise the process stops.
    @discardableResult public func swap(_ value: Value) -> Value {
        modify { current in
            let before = current
            current = value
            return before
        }
    }

    /// Changes the value atomically.
    ///
    /// - Parameter change: runs under the lock of this value; using the value inside it stops the process.
    /// - Returns: what `change` returns.
    /// - Throws: what `change` throws; the value is then unchanged, and no observer is notified.
    /// - Precondition: this is not a derived value: otherwise the process stops.
    @discardableResult public func modify<R>(_ change: (inout Value) throws -> R) rethrows -> R {
        guard let cell = source as? Cell<Value> else {
            fatalError("LiveValue: a derived value can't be changed; change the one that it is derived from")
        }
        return try cell.modify(change)
    }

    /// Calls `body` with the current value, and after each change with the new value.
    ///
    /// - Parameters:
    ///   - delivery: where `body` is called. If inline, one thread at a time calls it, so it may be called after `set` has
    ///     returned if another thread is delivering.
    ///   - body: may read and change this value: it is then notified of that change next.
    /// - Returns: a subscription that ends the calls when it is cancelled or released.
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

    /// The current value, then its changes. The stream ends when this value, or, if it is derived, the value that
    /// it is derived from, is deallocated. All elements are buffered until they are read.
    public var values: AsyncStream<Value> {
        AsyncStream { continuation in
            // The stream retains the observer, not this value.
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

    /// A value that is derived from this one on each read, so the two always agree.
    ///
    /// - Parameter transform: called on each read and for each observer, on any thread, under no lock.
    public func map<T: Sendable>(_ transform: @escaping @Sendable (Value) -> T) -> LiveValue<T> {
        LiveValue<T>(Derived(source, transform))
    }

    /// Notifies `dependent` of each change while it is alive.
    func add(_ dependent: any Dependent) { source.add(dependent) }
}

/// The source of a live value.
private protocol Source<Value>: AnyObject, Sendable {
    associatedtype Value: Sendable
    var value: Value { get }
    /// - Returns: a closure that ends the observation.
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
    // Sendability and exclusivity are unchecked: the variables are accessed only under `lock`. They are not one `Guarded` value,
    // since that would be another generic type, whose metadata would be looked up at each use.
    private struct WeakDependent: Sendable { weak let dependent: (any Dependent)? }

    private let lock = WordLock()
    @exclusivity(unchecked) private var current: Value
    @exclusivity(unchecked) private var observers = Registrations<Observer<Value>>()
    @exclusivity(unchecked) private var dependents: [WeakDependent] = []
    /// The number of dependents beyond which deallocated ones are removed.
    @exclusivity(unchecked) private var most = 8
    /// The thread that runs the closure of ``modify(_:)``; 0 if none does.
    private let changing = Atomic<UInt>(0)

    init(_ value: Value) { current = value }

    deinit {
        // Runs on the thread that releases the cell; nothing can change any more.
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

    /// Stops the process if the calling thread would deadlock with itself.
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
            let before = current  // released after unlocking: a value may be an object with a user's `deinit`
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
