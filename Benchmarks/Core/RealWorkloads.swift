/// The workloads of real work, each run by the peer's parallel loop, in the order of the report.
let realWorkloads: [Workload] = [
    Workload(
        id: "R1", title: "Merge sort",
        sentence: """
            N 64-bit numbers are sorted: \(Workload.piecesOfSort) parts by the standard library, then merged \
            level by level, each level in \(Workload.piecesOfSort) pieces. Time per number.
            """,
        unit: "ns/op", metric: .throughput,
        quick: [100_000], smoke: [100_000], thorough: [100_000, 1_000_000],
        expectedChecksum: Workload.checksumOfSort),
    Workload(
        id: "R2", title: "Mandelbrot set",
        sentence: """
            An image of N × N points of the Mandelbrot set, in tiles of \(Workload.sideOfTile) × \
            \(Workload.sideOfTile), whose times differ widely. Time per point.
            """,
        unit: "ns/op", metric: .throughput,
        sizes: .range(1...10_000),
        quick: [256], smoke: [64], thorough: [256, 1_024],
        expectedChecksum: Mandelbrot.checksum,
        operations: { $0 * $0 }),
    Workload(
        id: "R3", title: "Word count",
        sentence: """
            The words of N files in a folder, \(Texts.inFile) each, are counted by spelling: one table per \
            file, then one for all. Time per word.
            """,
        unit: "ns/op", metric: .throughput,
        sizes: .range(1...10_000),
        quick: [8], smoke: [8], thorough: [8, 64],
        expectedChecksum: Texts.checksum,
        operations: { $0 * Texts.inFile }),
]

extension Workload {
    // MARK: R1

    /// The parts that R1 sorts, and the pieces of each level of merges: a power of 2.
    public static let piecesOfSort = 64

    /// The number to sort at a given place.
    @inlinable
    public static func numberToSort(_ place: Int) -> UInt64 { mixed(UInt64(place)) }

    /// Returns a number's contribution to the checksum of R1, at any position. It is scattered over all bits, so
    /// that no other number can make up for a lost one.
    @inlinable
    public static func worth(ofSorted number: UInt64) -> UInt64 { mixed(number) }

    static func checksumOfSort(_ count: Int) -> UInt64 {
        sorts.value(count) {
            (0..<count).reduce(0) { $0 &+ worth(ofSorted: numberToSort($1)) }
        }
    }

    private static let sorts = Remembered<Int, UInt64>()

    // MARK: R2

    /// The side of a tile of R2, in points.
    public static let sideOfTile = 16
}

/// The picture of R2.
public enum Mandelbrot {
    /// The maximum number of steps of a point; points that have not escaped by then count as points of the set.
    public static let steps = 200

    /// How many steps the point takes to leave a circle of radius 2.
    @inlinable
    public static func steps(column: Int, row: Int, of side: Int) -> UInt64 {
        let real = -2 + 2.6 * Double(column) / Double(side)
        let imaginary = -1.3 + 2.6 * Double(row) / Double(side)
        var (x, y) = (0.0, 0.0)
        var step = 0
        while step < steps && x * x + y * y <= 4 {
            (x, y) = (x * x - y * y + real, 2 * x * y + imaginary)
            step += 1
        }
        return UInt64(step)
    }

    static func checksum(side: Int) -> UInt64 {
        pictures.value(side) {
            Workload.checksum(
                ofModel: (0..<side * side).lazy.map { steps(column: $0 % side, row: $0 / side, of: side) })
        }
    }

    private static let pictures = Remembered<Int, UInt64>()
}

/// The texts of R3.
public enum Texts {
    /// The number of words in each file.
    public static let inFile = 4_000

    /// The number of different words. The first of them are much more frequent than the last.
    static let vocabulary = 400

    /// The text of a file: words of lower-case letters, each followed by a space or an end of line.
    public static func text(ofFile file: Int) -> [UInt8] {
        var text: [UInt8] = []
        for place in 0..<inFile {
            text += spelling(word(place, ofFile: file))
            text.append(UInt8(ascii: place % 12 == 11 ? "\n" : " "))
        }
        return text
    }

    /// The index of a word; its square root is evenly distributed.
    private static func word(_ place: Int, ofFile file: Int) -> Int {
        let random = Int(Workload.mixed(UInt64(file * inFile + place)) % UInt64(vocabulary * vocabulary))
        return vocabulary - 1 - Int(Double(random).squareRoot())
    }

    /// A spelling of two to nine letters; no two words are alike.
    private static func spelling(_ word: Int) -> [UInt8] {
        let letters = [UInt8](UInt8(ascii: "a")...UInt8(ascii: "z"))
        let first = [letters[word % 26], letters[word / 26 % 26]]
        let random = Workload.mixed(UInt64(word))
        return first + (0..<Int(random % 8)).map { letters[Int(random >> (8 + 5 * UInt64($0))) % 26] }
    }

    /// Adds a letter to the hash of a word, which represents the word in a table.
    ///
    /// Source: Fowler, Noll, Vo: FNV-1a.
    @inlinable
    public static func hash(_ hash: UInt64, _ letter: UInt8) -> UInt64 {
        (hash ^ UInt64(letter)) &* 0x100_0000_01B3
    }

    /// The hash of an empty word.
    public static let hashOfNothing: UInt64 = 0xCBF2_9CE4_8422_2325

    /// Returns the checksum of a table.
    public static func checksum(ofTable table: [UInt64: Int]) -> UInt64 {
        table.reduce(0) { $0 &+ Workload.mixed($1.key) &* UInt64($1.value) }
    }

    static func checksum(files: Int) -> UInt64 {
        texts.value(files) {
            var table: [UInt64: Int] = [:]
            for file in 0..<files {
                for place in 0..<inFile {
                    table[spelling(word(place, ofFile: file)).reduce(hashOfNothing, hash), default: 0] += 1
                }
            }
            return checksum(ofTable: table)
        }
    }

    private static let texts = Remembered<Int, UInt64>()
}
