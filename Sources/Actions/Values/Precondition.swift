// Precondition.swift - the condition under which an action may run, and the value that its work is given.

/// A live value and the test that it has to pass. The value that was tested is the one that the work gets.
public struct Precondition<Value: Sendable>: Sendable {
    /// The value, when the test is passed now: nil, when it is not.
    @usableFromInline let read: @Sendable () -> Value?
    /// Has a dependent told of all changes that may matter.
    let follow: @Sendable (any Dependent) -> Void

    /// The values of `source` that pass a test.
    ///
    /// - Parameter isSatisfied: runs on any thread, under no lock: whenever the value changes, and for each trigger.
    public init(_ source: LiveValue<Value>, where isSatisfied: @escaping @Sendable (Value) -> Bool) {
        read = {
            let value = source.value
            return isSatisfied(value) ? value : nil
        }
        follow = { source.add($0) }
    }

    /// The values of `source` that can be made into another one: nil forbids.
    public init<Raw>(_ source: LiveValue<Raw>, resolve: @escaping @Sendable (Raw) -> Value?) {
        read = { resolve(source.value) }
        follow = { source.add($0) }
    }

    /// The values of `source` that are not nil.
    public init(unwrapping source: LiveValue<Value?>) { self.init(source, resolve: { $0 }) }

    /// The values of `source`, while its last proposal was not refused.
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

    /// Both; each source is read once.
    public func and<Other: Sendable>(_ other: Precondition<Other>) -> Precondition<(Value, Other)> {
        Precondition<(Value, Other)>(
            read: {
                guard let value = read(), let second = other.read() else { return nil }
                return (value, second)
            }, follow: Self.following([follow, other.follow]))
    }

    /// The same condition, for work that needs no value.
    public var flag: Precondition<Void> {
        Precondition<Void>(read: { read() == nil ? nil : () }, follow: follow)
    }

    /// The value, when the test is passed now: nil, when it is not.
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

    /// Holds.
    public static var always: Precondition { Precondition(read: { () }, follow: { _ in }) }

    /// Holds while all do; when there are none, too.
    public static func all(_ members: [Precondition]) -> Precondition {
        Precondition(
            read: { members.allSatisfy { $0.read() != nil } ? () : nil },
            follow: following(members.map(\.follow)))
    }

    /// Holds while one does; when there are none, it does not.
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
