import Foundation

/// A drawing as text: shapes with classes, so that one style sheet gives both a light and a dark page their
/// colours.
struct SVG {
    private var body = ""
    private let width: Double
    private let height: Double

    init(width: Double, height: Double) {
        self.width = width
        self.height = height
    }

    mutating func line(from: (Double, Double), to: (Double, Double), class name: String) {
        body +=
            "<line x1=\"\(from.0.svg)\" y1=\"\(from.1.svg)\" x2=\"\(to.0.svg)\" y2=\"\(to.1.svg)\" class=\"\(name)\"/>\n"
    }

    mutating func rectangle(x: Double, y: Double, width: Double, height: Double, class name: String) {
        body +=
            "<rect x=\"\(x.svg)\" y=\"\(y.svg)\" width=\"\(max(0, width).svg)\" height=\"\(max(0, height).svg)\""
        body += " class=\"\(name)\"/>\n"
    }

    mutating func dot(_ x: Double, _ y: Double, radius: Double, class name: String, hint: String) {
        body += "<circle cx=\"\(x.svg)\" cy=\"\(y.svg)\" r=\"\(radius.svg)\" class=\"\(name)\">"
        body += "<title>\(hint.escaped)</title></circle>\n"
    }

    mutating func path(_ points: [(Double, Double)], class name: String, isClosed: Bool = false) {
        guard let first = points.first else { return }
        let rest = points.dropFirst().map { "L\($0.0.svg) \($0.1.svg)" }.joined()
        body +=
            "<path d=\"M\(first.0.svg) \(first.1.svg)\(rest)\(isClosed ? "Z" : "")\" class=\"\(name)\"/>\n"
    }

    enum Anchor: String { case start, middle, end }

    mutating func text(
        _ x: Double, _ y: Double, _ text: String, class name: String = "", anchor: Anchor = .start
    ) {
        body += "<text x=\"\(x.svg)\" y=\"\(y.svg)\" class=\"\(name)\" text-anchor=\"\(anchor.rawValue)\">"
        body += "\(text.escaped)</text>\n"
    }

    /// The drawing with its style, for a page or a file of its own.
    func render(title: String) -> String {
        """
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(width.svg) \(height.svg)" width="\(width.svg)" \
        height="\(height.svg)" role="img" aria-label="\(title.escaped)">
        <style>\(Self.style)</style>
        <rect width="100%" height="100%" class="paper"/>
        \(body)</svg>
        """
    }

    /// One hue for each peer, told apart also by people who see red and green alike (Okabe and Ito).
    private static let hues = [
        "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#999999", "#b8a000", "#6a51a3",
        "#444444",
    ]

    private static let style: String = {
        var style = """
            svg text{font:12px system-ui,sans-serif;fill:#222}svg .title{font-size:15px;font-weight:600}\
            svg .small{font-size:11px;fill:#666}svg .strong{font-weight:600}svg .paper{fill:#fff}\
            svg .grid{stroke:#e6e6e6}svg .one{stroke:#222;stroke-dasharray:4 3}\
            svg .ours{fill:#009e73;opacity:.07}svg .theirs{fill:#d55e00;opacity:.07}
            """
        for (index, hue) in hues.enumerated() {
            style += "svg .f\(index){fill:\(hue)}svg .s\(index){stroke:\(hue);stroke-width:2;fill:none}"
            style += "svg .b\(index){fill:\(hue);opacity:.15}"
        }
        style += """
            @media(prefers-color-scheme:dark){svg text{fill:#ddd}svg .small{fill:#999}svg .paper{fill:#161616}\
            svg .grid{stroke:#333}svg .one{stroke:#ddd}svg .f9{fill:#bbb}svg .s9{stroke:#bbb}}
            """
        return style
    }()

    static func hue(of index: Int) -> Int { index % hues.count }
}

extension Double {
    fileprivate var svg: String {
        let rounded = (self * 10).rounded() / 10
        return rounded == rounded.rounded() ? "\(Int(rounded))" : "\(rounded)"
    }
}

extension String {
    /// The text with what has a meaning in XML written as entities.
    var escaped: String {
        var result = ""
        for character in self {
            switch character {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            default: result.append(character)
            }
        }
        return result
    }
}
