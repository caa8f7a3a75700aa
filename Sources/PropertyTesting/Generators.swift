// Generators.swift - values of the standard library: numbers, text, collections, durations, cases of enumerations.

import CompositeOperationsBasics

extension Generator where Value: FixedWidthInteger & Sendable {
    /// The integers of a range; the one nearest to its lower bound is the simplest.
    public static func integer(in range: ClosedRange<Value>) -> Generator {
        Generator { source in
            let distance = Value.Magnitude(truncatingIfNeeded: range.upperBound &- range.lowerBound)
            return range.lowerBound &+ Value(truncatingIfNeeded: magnitude(upTo: distance, &source))
        }
    }

    /// Any integer, with small ones and those at the ends of the type's range more often; zero is the simplest.
    public static var integer: Generator {
        Generator { source in
            let edges: [Value] = [.min, .max, .max - 1, .min + 1]
            switch source.draw(below: 8) {
            case 0...3: return small(&source)
            case 4...6: return Value(truncatingIfNeeded: magnitude(upTo: .max, &source))
            default: return edges[Int(source.draw(below: 4))]
            }
        }
    }

    /// Draws one choice if that is wide enough; otherwise one for each 32 bits.
    private static func magnitude(upTo most: Value.Magnitude, _ source: inout Source) -> Value.Magnitude {
        if let most = UInt64(exactly: most), most < .max {
            return Value.Magnitude(source.draw(below: most + 1))
        }
        var number = Value.Magnitude.zero
        for _ in 0..<(most.bitWidth - most.leadingZeroBitCount + 31) / 32 {
            number = number << 32 | Value.Magnitude(truncatingIfNeeded: source.draw(below: 1 << 32))
        }
        return most == .max ? number : number % (most + 1)
    }

    private static func small(_ source: inout Source) -> Value {
        let size = Value(truncatingIfNeeded: source.draw(below: 17))
        return Value.isSigned && source.draw(below: 2) == 1 ? 0 &- size : size
    }
}

extension Generator where Value: BinaryFloatingPoint & Sendable, Value.RawSignificand: FixedWidthInteger {
    /// The numbers of a range; its lower bound is the simplest.
    public static func number(in range: ClosedRange<Value>) -> Generator {
        demand(
            range.lowerBound.isFinite && range.upperBound.isFinite,
            "Generator.number: the bounds must be finite")
        return Generator { source in
            // Interpolated between the bounds, because the width of a range over the whole type exceeds the greatest number.
            let part = Value(source.draw(below: 1 << 32)) / Value((UInt64(1) << 32) - 1)
            let number = range.lowerBound * (1 - part) + range.upperBound * part
            return min(max(number, range.lowerBound), range.upperBound)
        }
    }

    /// Any number: whole numbers and fractions, large and tiny ones, and now and then an infinity, a negative zero, or NaN.
    /// Zero is the simplest.
    ///
    /// - Parameter isFinite: whether infinities and NaN are excluded.
    public static func number(isFinite: Bool = false) -> Generator {
        Generator { source in
            let edges: [Value] = [
                -0.0, .leastNonzeroMagnitude, .leastNormalMagnitude, .greatestFiniteMagnitude, .ulpOfOne,
                .infinity,
                .nan,
            ]
            let sign: Value = source.draw(below: 2) == 1 ? -1 : 1
            switch source.draw(below: 8) {
            case 0...2: return sign * Value(source.draw(below: 101))
            case 3...4: return sign * Value(source.draw(below: 10_001)) / 100
            case 5...6:
                let exponent = Int(source.draw(below: 61)) - 30
                return sign * Value(1 + source.draw(below: 1 << 20)) * power(of: 2, exponent)
            default: return sign * edges[Int(source.draw(below: isFinite ? 5 : 7))]
            }
        }
    }

    private static func power(of base: Value, _ exponent: Int) -> Value {
        (0..<abs(exponent)).reduce(Value(1)) { product, _ in exponent < 0 ? product / base : product * base }
    }
}

extension Generator<Character> {
    /// Characters that surprise programs: letters and digits first, then spaces, punctuation, other scripts, symbols composed
    /// of several scalars, and look-alikes.
    public static var character: Generator {
        let plain = Array("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
        let marks = Array(" \t\n\u{0}\"'\\/<>&%;:,.-_()[]{}$#@!?*+=|~^`\r\n")
        let strange = Array("äßéÅ\u{41}\u{30A}İıſﬁ漢字かな한글עבריתعربى🙂👩‍👩‍👧🇪🇺\u{200D}\u{202E}\u{FEFF}\u{7F}")
        return frequency([(6, element(of: plain)), (2, element(of: marks)), (1, element(of: strange))])
    }
}

extension Generator<String> {
    /// Strings of the characters of a generator; the empty string is the simplest.
    public static func string(
        of characters: Generator<Character> = .character, count: ClosedRange<Int> = 0...20
    ) -> Generator {
        characters.array(count: count).map { String($0) }
    }
}

extension Generator {
    /// Sets of the values of a generator; a set may be smaller than `count` if values repeat.
    public static func set<Element: Hashable>(of element: Generator<Element>, count: ClosedRange<Int>)
        -> Generator
    where Value == Set<Element> {
        element.array(count: count).map { Set($0) }
    }

    /// Dictionaries of keys and values; for a repeated key, the first value counts.
    public static func dictionary<Key: Hashable, Element>(
        of key: Generator<Key>, to value: Generator<Element>, count: ClosedRange<Int>
    ) -> Generator where Value == [Key: Element] {
        Generator<(Key, Element)>.zip(key, value).array(count: count).map {
            Dictionary($0) { first, _ in first }
        }
    }
}

extension Generator where Value: CaseIterable & Sendable {
    /// The cases; the first is the simplest.
    public static var anyCase: Generator { element(of: Array(Value.allCases)) }
}

extension Generator<Duration> {
    /// The durations of a range, as whole nanoseconds; its lower bound is the simplest.
    public static func duration(in range: ClosedRange<Duration>) -> Generator {
        let nanosecond = Duration.nanoseconds(1).attoseconds
        let most = (range.upperBound - range.lowerBound).attoseconds / nanosecond
        return Generator<Int128>.integer(in: 0...most).map {
            range.lowerBound + Duration(attoseconds: $0 * nanosecond)
        }
    }
}
