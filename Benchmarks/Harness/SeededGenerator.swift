/// SplitMix64: the order of the rounds can be reproduced from the printed seed.
///
/// Source: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators (2014).
package struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    /// The round order within a unit does not depend on which units were measured before it, so a resumed run
    /// has the same orders.
    init(seed: UInt64, unit: RunUnit) {
        // FNV-1a: the same in every process, unlike `Hasher`.
        state = "\(unit)".utf8.reduce(seed ^ 0xCBF2_9CE4_8422_2325) {
            ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3
        }
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
