import CompositeOperationsBasics

/// Thrown by a generator that cannot make a value from its choices: the case does not count.
public struct Discarded: Error {
    /// Creates the error.
    public init() {}
}

/// Makes values of type `Value` out of choices; the simplest choices make the simplest value.
public struct Generator<Value>: Sendable {
    private let make: @Sendable (inout Source) throws -> Value

    /// Creates a generator from its function.
    ///
    /// - Parameter make: a function of the choices alone; it may throw ``Discarded``.
    public init(_ make: @escaping @Sendable (inout Source) throws -> Value) { self.make = make }

    /// Makes one value.
    public func value(from source: inout Source) throws -> Value { try make(&source) }

    /// The values that `transform` makes from this generator's values.
    public func map<Other>(_ transform: @escaping @Sendable (Value) -> Other) -> Generator<Other> {
        Generator<Other> { source in transform(try make(&source)) }
    }

    /// The values of the generators that `next` makes from this generator's values.
    public func flatMap<Other>(_ next: @escaping @Sendable (Value) -> Generator<Other>) -> Generator<Other> {
        Generator<Other> { source in try next(try make(&source)).value(from: &source) }
    }

    /// The values that satisfy a condition; discards the case after 50 values that do not.
    public func filter(_ condition: @escaping @Sendable (Value) -> Bool) -> Generator {
        Generator { source in
            for _ in 0..<50 {
                let value = try source.span(make)
                if condition(value) { return value }
            }
            throw Discarded()
        }
    }

    /// This generator's values, and nil, which is the simplest.
    public var optional: Generator<Value?> {
        Generator<Value?> { source in source.draw(below: 4) == 0 ? nil : try make(&source) }
    }

    /// Arrays of this generator's values.
    public func array(count: ClosedRange<Int>) -> Generator<[Value]> {
        Generator<[Value]> { source in
            var values: [Value] = []
            while values.count < count.upperBound {
                // A separate choice decides whether each element exists, so one can be removed from the
                // middle.
                let next: Value? = try source.span { source in
                    let isWanted =
                        values.count < count.lowerBound
                        || source.draw(below: UInt64(count.upperBound - count.lowerBound) + 1) != 0
                    return isWanted ? try make(&source) : nil
                }
                guard let next else { break }
                values.append(next)
            }
            return values
        }
    }
}

extension Generator {
    /// Arrays of the values of a generator.
    public static func array<Element>(of element: Generator<Element>, count: ClosedRange<Int>) -> Generator<
        [Element]
    >
    where Value == [Element] {
        element.array(count: count)
    }

    /// One of the given values; the first is the simplest.
    public static func element(of values: [Value]) -> Generator where Value: Sendable {
        demand(!values.isEmpty, "Generator.element: there must be a value to choose")
        return Generator { source in values[Int(source.draw(below: UInt64(values.count)))] }
    }

    /// The values of one of several generators, chosen by weight; the first is the simplest.
    public static func frequency(_ choices: [(weight: Int, generator: Generator)]) -> Generator {
        let total = choices.reduce(0) { $0 + $1.weight }
        demand(total > 0, "Generator.frequency: the weights must add up to at least 1")
        return Generator { source in
            var rest = Int(source.draw(below: UInt64(total)))
            for choice in choices {
                if rest < choice.weight { return try choice.generator.value(from: &source) }
                rest -= choice.weight
            }
            fatalError("a choice is below the sum of the weights")
        }
    }

    /// The values of one of several generators; the first is the simplest.
    public static func oneOf(_ generators: [Generator]) -> Generator {
        frequency(generators.map { (1, $0) })
    }

    /// Pairs of the values of two generators.
    public static func zip<A, B>(_ first: Generator<A>, _ second: Generator<B>) -> Generator<(A, B)>
    where Value == (A, B) {
        Generator<(A, B)> { source in (try first.value(from: &source), try second.value(from: &source)) }
    }
}

extension Generator<Int> {
    /// The integers of a range; the one nearest to its lower bound is the simplest.
    public static func int(in range: ClosedRange<Int>) -> Generator<Int> { integer(in: range) }
}

extension Generator<Bool> {
    /// False, which is the simpler one, and true.
    public static var bool: Generator<Bool> { Generator { source in source.draw(below: 2) == 1 } }
}
