import BenchmarkHarness
import BenchmarkReport
import Foundation
import Testing

/// The drawings of the page, checked by their boxes: texts overlap nothing, and nothing leaves its drawing.
@Suite struct DrawingTests {
    /// Runs that are as different as possible: complete, short, of one row, empty, and with figures of any size.
    static let runs: [(name: String, document: RunDocument)] = {
        let whole = SyntheticRun().document()
        var one = whole
        one.results.removeAll { !["W1", "W23-open"].contains($0.workload) || $0.peer == "tbb" }
        var none = whole
        none.results = []
        var grains = whole
        for index in grains.results.indices where grains.results[index].workload == "W3" {
            let n = Double(grains.results[index].n)
            grains.results[index].counts["grain_ns"] = n
            grains.results[index].counts["ideal_ns_per_op"] =
                n / (n + 20_000) * (grains.results[index].values.first ?? 1)
        }
        var warned = SyntheticRun(
            absent: ["tbb", "nio"], unlikeItself: ["W1", "W2", "W3", "W5", "W6", "W7", "W9", "W10"]
        )
        .document()
        warned.isPartial = true
        warned.controls.warnings = (1...6).map {
            "The process of 'peer \($0)' switches while it waits for its turn."
        }
        return [
            ("warned", warned), ("whole", whole), ("threads", SyntheticRun().document(sweeping: [1, 4, 8])),
            ("without a peer", SyntheticRun(absent: ["tbb"]).document()),
            ("short", SyntheticRun(restarts: 1, rounds: 1).document()), ("one row", one), ("nothing", none),
            ("grains", grains),
            (
                "far ahead",
                SyntheticRun(factors: ["dispatch": 40_000, "tbb": 1_234, "nio": 0.00123]).document()
            ),
            ("even", SyntheticRun(factors: ["dispatch": 1.0004, "tbb": 0.9996, "pthread": 1.02]).document()),
        ]
    }()

    @Test(arguments: runs.indices) func `no text lies on another or on a mark, and none leaves its drawing`(
        run: Int
    ) throws {
        let page = Page(Self.runs[run].document)
        let drawings = try Drawing.sources(in: page.render()) + page.pictures().map(\.drawing)
        #expect(drawings.count >= 2)
        for source in drawings {
            let faults = try Drawing(source).faults
            #expect(faults.isEmpty, "\(Self.runs[run].name): \(faults.prefix(5).joined(separator: "; "))")
        }
    }

    /// A text at an end of the axis is moved inwards, and so closer to the next text.
    @Test func `the texts of an axis stand apart, however long it is`() {
        for length in stride(from: 100.0, through: 700, by: 1) {
            for values in [[0.01, 100], [0.02, 30], [1, 1.2], [0.3, 1_000]] {
                let x = Scale(values, margin: 1.1, from: 0, to: length)
                let ticks = x.ticks { _ in 36 }
                let places = ticks.map { x.middle($0, room: 36) }
                #expect(zip(places, places.dropFirst()).allSatisfy { $1 - $0 >= 46 }, "\(length): \(values)")
                #expect(places.allSatisfy { $0 >= 18 && $0 <= length - 18 })
            }
        }
    }

    @Test func `a text on a text, on a mark or outside of the drawing is a fault`() throws {
        func faults(_ body: String) throws -> Int {
            try Drawing("<svg width=\"100\" height=\"50\" aria-label=\"a\">\(body)</svg>").faults.count
        }
        #expect(try faults("<text x=\"10\" y=\"20\">one</text><text x=\"60\" y=\"20\">two</text>") == 0)
        #expect(try faults("<text x=\"10\" y=\"20\">one</text><text x=\"20\" y=\"25\">two</text>") == 1)
        #expect(try faults("<text x=\"10\" y=\"20\">one</text><circle cx=\"20\" cy=\"15\" r=\"3\"/>") == 1)
        #expect(try faults("<text x=\"10\" y=\"20\">one</text><polygon points=\"12,10 20,10 16,18\"/>") == 1)
        #expect(try faults("<text x=\"90\" y=\"20\">one</text>") == 1)
        #expect(try faults("<text x=\"10\" y=\"20\" text-anchor=\"end\">one</text>") == 1)
    }

    /// The widths that the drawings assume are not smaller than those of a browser.
    @Test(.enabled(if: Chromium.path != nil)) func `a browser finds no text on another either`() throws {
        let page = try Page(SyntheticRun().document()).render()
        let script = """
            <script>
            document.querySelectorAll('details').forEach(d => d.open = true)
            let faults = [], texts = 0
            for (const svg of document.querySelectorAll('svg')) {
              const all = [...svg.querySelectorAll('text')], frame = svg.viewBox.baseVal
              if (!svg.getBoundingClientRect().width) continue
              const boxes = all.map(text => text.getBBox()), line = text => +text.getAttribute('y')
              texts += all.length
              all.forEach((text, i) => {
                const a = boxes[i]
                if (a.x < -1 || a.x + a.width > frame.width + 1) faults.push(text.textContent + ' leaves ' + svg.ariaLabel)
                all.forEach((other, j) => {
                  const b = boxes[j]
                  if (j > i && a.x + 1 < b.x + b.width && b.x + 1 < a.x + a.width && Math.abs(line(text) - line(other)) < 9)
                    faults.push(text.textContent + ' on ' + other.textContent)
                })
              })
            }
            document.title = texts + ' texts;' + faults.length + ' faults: ' + faults.slice(0, 5).join('; ')
            </script></body>
            """
        let file = try Chromium.output().appendingPathComponent("boxes.html")
        try page.replacingOccurrences(of: "</body>", with: script).write(
            to: file, atomically: true, encoding: .utf8)
        let title = try #require(
            Chromium.content(of: file).components(separatedBy: "<title>").dropFirst().first?.components(
                separatedBy: "</title>"
            ).first)
        #expect(title.contains(" texts;0 faults: "), "\(title)")
        #expect(try #require(title.split(separator: " ").first.flatMap { Int($0) }) > 1_000)
    }

    /// For inspection: next to the test program, in the folder `report-of-the-tests`.
    @Test(.enabled(if: Chromium.path != nil), .serialized, arguments: [400, 800, 1_600], [false, true])
    func `the first screen is photographed, light and dark`(width: Int, isDark: Bool) throws {
        let folder = try Chromium.output()
        let page = folder.appendingPathComponent("page-\(width)-\(isDark ? "dark" : "light").html")
        try Page(SyntheticRun().document()).render().write(to: page, atomically: true, encoding: .utf8)
        let picture = page.deletingPathExtension().appendingPathExtension("png")
        try Chromium.photograph(
            page, width: width, height: width == 400 ? 900 : 1_000, isDark: isDark, to: picture)
        let bytes = try Data(contentsOf: picture)
        #expect(bytes.starts(with: [0x89, 0x50, 0x4E, 0x47]))
        // The width and height of the image follow its first 16 bytes, most significant byte first.
        #expect(bytes[16..<20].reduce(0) { $0 << 8 | Int($1) } == width)
        // A blank page is a few kilobytes.
        #expect(bytes.count > 20_000)
    }
}
