import BenchmarkReport
import Foundation
import FoundationXML
import Testing

/// An SVG, interpreted as a browser would: the positions of its texts and its marks.
struct Drawing {
    struct Box {
        let name: String
        var left: Double
        var top: Double
        var right: Double
        var bottom: Double

        /// Whether two texts are so close to each other that they read as one.
        func runsInto(_ other: Box) -> Bool {
            var wide = self
            (wide.left, wide.right) = (left - 3, right + 3)
            return wide.overlaps(other)
        }

        /// Whether more than a hair's breadth of one overlaps the other.
        func overlaps(_ other: Box) -> Bool {
            let hair = 0.6
            return left < other.right - hair && other.left < right - hair && top < other.bottom - hair
                && other.top < bottom - hair
        }

        func lies(in other: Box) -> Bool {
            let hair = 0.6
            return left >= other.left - hair && right <= other.right + hair && top >= other.top - hair
                && bottom <= other.bottom + hair
        }
    }

    let title: String
    let frame: Box
    let texts: [Box]
    let marks: [Box]

    /// The faults of the drawing: a sentence each.
    var faults: [String] {
        var faults: [String] = []
        for (place, text) in texts.enumerated() {
            if !text.lies(in: frame) { faults.append("\(title): '\(text.name)' leaves the drawing") }
            for other in texts[(place + 1)...] where text.runsInto(other) {
                faults.append("\(title): '\(text.name)' runs into '\(other.name)'")
            }
            for mark in marks where text.overlaps(mark) {
                faults.append("\(title): '\(text.name)' lies on a mark (\(mark.name))")
            }
        }
        return faults
    }

    init(_ svg: String) throws {
        let reader = Reader()
        let parser = XMLParser(data: Data(svg.utf8))
        parser.delegate = reader
        try #require(parser.parse(), "not well formed: \(svg.prefix(200))")
        title = reader.title
        frame = try #require(reader.frame)
        texts = reader.texts
        marks = reader.marks
    }

    /// All drawings of a page, as they are.
    static func sources(in page: String) -> [String] {
        page.components(separatedBy: "<svg ").dropFirst().compactMap { part in
            part.range(of: "</svg>").map { "<svg " + part[..<$0.upperBound] }
        }
    }

    private final class Reader: NSObject, XMLParserDelegate {
        var title = ""
        var frame: Box?
        var texts: [Box] = []
        var marks: [Box] = []
        private var element: [String: String] = [:]
        private var words: String?

        func parser(
            _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
            attributes: [String: String]
        ) {
            func number(_ key: String) -> Double { attributes[key].flatMap(Double.init) ?? 0 }
            switch name {
            case "svg":
                title = attributes["aria-label"] ?? ""
                frame = Box(name: title, left: 0, top: 0, right: number("width"), bottom: number("height"))
            case "text":
                element = attributes
                words = ""
            case "circle":
                let (x, y, r) = (number("cx"), number("cy"), number("r"))
                marks.append(Box(name: "circle", left: x - r, top: y - r, right: x + r, bottom: y + r))
            case "polygon":
                let numbers = (attributes["points"] ?? "").split { $0 == " " || $0 == "," }.compactMap {
                    Double($0)
                }
                let x = stride(from: 0, to: numbers.count, by: 2).map { numbers[$0] }
                let y = stride(from: 1, to: numbers.count, by: 2).map { numbers[$0] }
                if let left = x.min(), let right = x.max(), let top = y.min(), let bottom = y.max() {
                    marks.append(Box(name: "polygon", left: left, top: top, right: right, bottom: bottom))
                }
            default: break
            }
        }

        func parser(_ parser: XMLParser, foundCharacters string: String) { words? += string }

        func parser(
            _ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?
        ) {
            guard name == "text", let words else { return }
            self.words = nil
            func number(_ key: String) -> Double { element[key].flatMap(Double.init) ?? 0 }
            let style = element["class"] ?? ""
            let width = TextMetrics.width(words, class: style)
            let size = TextMetrics.font(ofClass: style).size
            let left =
                switch element["text-anchor"] {
                case "middle": number("x") - width / 2
                case "end": number("x") - width
                default: number("x")
                }
            // Capitals and digits reach three quarters of the size above the line, descenders a quarter below.
            texts.append(
                Box(
                    name: words, left: left, top: number("y") - 0.76 * size, right: left + width,
                    bottom: number("y") + 0.24 * size))
        }
    }
}
