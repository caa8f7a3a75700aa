// Precondition.swift - the condition under which an action may run, and the value that is passed to its work.

/// A live value and the test that it must pass. The work gets the value that was tested.
public struct Precondition<Value: Sendable>: Sendable {
    /// The value if it passes the test now, else nil.
    @usableFromInline let read: @Sendable () -> Value?
    /// Registers a dependent, which is notified of every change that may affect the condition.
    let follow: @Sendable (any Dependent) -> Void

    /// Holds while the value of `source` passes a test.
    ///
    /// - Parameter isSatisfied: runs on any thread, under no lock, whenever the value changes and for each trigger.
    public init(_ source: LiveValue<Value>, where isSatisfied: @escaping @Sendable (Value) -> Bool) {
        read = {
            let value = source.value
            return isSatisfied(value) ? value : nil
        }
        follow = { source.add($0) }
    }

    /// Holds while `resolve` returns a value for that of `source`; the work gets the result.
    public init<Raw>(_ source: LiveValue<Raw>, resolve: @escaping @Sendable (Raw) -> Value?) {
        read = { resolve(source.value) }
        follow = { source.add($0) }
    }

    /// Holds while the value of `source` is not nil.
    public init(unwrapping source: LiveValue<Value?>) { self.init(source, resolve: { $0 }) }

    /// Holds unless the last proposal to `source` was refused.
    public init(_ source: ValidatedValue<Value>) {
        read = { source.verdict.value.isValid ? source.value.value : nil }
        follow = { dependent in
            source.value.add(dependent)
            source.verdict.add(dependent)
        }
    }

    private init(
        read: @escaping @Sendable () -> Value?, follow: @escaping @Sendable (any Dependent) -> Void
    ) {
        self.read = read
        self.follow = follow
    }

    /// Holds while both conditions do. Each source is read once.
    public func and<Other: Sendable>(_ other: Precondition<Other>) -> Precondition<(Value, Other)> {
        Precondition<(Value, Other)>(
            read: {
                guard let value = read(), let second = other.read() else { return nil }
                return (value, second)
            }, follow: Self.following([follow, other.follow]))
    }

    /// The same condition without its value, for work that needs none.
    public var flag: Precondition<Void> {
        Precondition<Void>(read: { read() == nil ? nil : () }, follow: follow)
    }

    /// The value if it passes the test now, else nil.
    public var current: Value? { read() }

    private static func following(_ members: [@Sendable (any Dependent) -> Void])
        -> @Sendable (any Dependent) -> Void
    {
        { dependent in for follow in members { follow(dependent) } }
    }
}

extension Precondition where Value == Void {
    /// Holds while the flag is true.
    public init(_ flag: LiveValue<Bool>) {
        self.init(read: { flag.value ? () : nil }, follow: { flag.add($0) })
    }

    /// Always holds.
    public static var always: Precondition { Precondition(read: { () }, follow: { _ in }) }

    /// Holds while all members do; also holds if there are none.
    public static func all(_ members: [Precondition]) -> Precondition {
        Precondition(
            read: { members.allSatisfy { $0.read() != nil } ? () : nil },
            follow: following(members.map(\.follow)))
    }

    /// Holds while at least one member does; does not hold if there are none.
    public static func any(_ members: [Precondition]) -> Precondition {
        Precondition(
            read: { members.contains { $0.read() != nil } ? () : nil },
            follow: following(members.map(\.follow)))
    }

    /// Holds while `member` does not.
    public static prefix func ! (_ member: Precondition) -> Precondition {
        Precondition(read: { member.read() == nil ? () : nil }, follow: member.follow)
    }
}
