import Foundation

/// A drawing as text: shapes with classes, so that one style sheet supplies the colours for both a light
/// and a dark page.
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

    /// The mark of a peer, with a tooltip.
    mutating func mark(_ look: Look, _ x: Double, _ y: Double, radius: Double, hint: String) {
        let title = "<title>\(hint.escaped)</title>"
        let fill = "class=\"f\(look.hue) mark\""
        func corners(_ angles: [Double]) -> String {
            let points = angles.map { angle in
                let (sine, cosine) = Self.direction(angle)
                return "\((x + radius * 1.25 * cosine).svg),\((y + radius * 1.25 * sine).svg)"
            }
            return "<polygon points=\"\(points.joined(separator: " "))\" \(fill)>\(title)</polygon>\n"
        }
        let place = "cx=\"\(x.svg)\" cy=\"\(y.svg)\" r=\"\(radius.svg)\""
        switch look.shape {
        case .circle: body += "<circle \(place) \(fill)>\(title)</circle>\n"
        case .ring: body += "<circle \(place) class=\"s\(look.hue) hollow mark\">\(title)</circle>\n"
        case .square: body += corners([45, 135, 225, 315])
        case .up: body += corners([30, 150, 270])
        case .down: body += corners([90, 210, 330])
        case .diamond: body += corners([0, 90, 180, 270])
        case .pentagon: body += corners([54, 126, 198, 270, 342])
        }
    }

    mutating func path(_ points: [(Double, Double)], class name: String, isClosed: Bool = false) {
        body += "<path d=\"\(Self.commands(points))\(isClosed ? "Z" : "")\" class=\"\(name)\"/>\n"
    }

    enum Anchor: String { case start, middle, end }

    mutating func text(
        _ x: Double, _ y: Double, _ text: String, class name: String = "", anchor: Anchor = .start
    ) {
        let anchored = anchor == .start ? "" : " text-anchor=\"\(anchor.rawValue)\""
        body += "<text x=\"\(x.svg)\" y=\"\(y.svg)\" class=\"\(name)\"\(anchored)>\(text.escaped)</text>\n"
    }

    /// The drawing for a page that has the style, or, as a separate file, with its own style and
    /// background.
    func render(title: String, isAlone: Bool = false) -> String {
        let own =
            isAlone
            ? "<style>\(Look.style)</style>\n<rect width=\"100%\" height=\"100%\" class=\"paper\"/>\n" : ""
        return """
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(width.svg) \(height.svg)" width="\(width.svg)" \
            height="\(height.svg)" role="img" aria-label="\(title.escaped)">
            \(own)\(body)</svg>
            """
    }

    /// A line through the points, in the syntax of a path.
    static func commands(_ points: [(Double, Double)]) -> String {
        points.enumerated().map { "\($0 == 0 ? "M" : "L")\($1.0.svg) \($1.1.svg)" }.joined()
    }
}

extension Double {
    fileprivate var svg: String {
        let tenths = Int((self * 10).rounded())
        let (whole, rest) = tenths.magnitude.quotientAndRemainder(dividingBy: 10)
        return (tenths < 0 ? "-" : "") + "\(whole)" + (rest == 0 ? "" : ".\(rest)")
    }
}

extension String {
    /// The text with XML's special characters replaced by entities.
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

extension SVG {
    /// Sine and cosine of an angle in degrees.
    private static func direction(_ degrees: Double) -> (Double, Double) {
        let angle = degrees / 180 * Double.pi
        return (sin(angle), cos(angle))
    }
}
