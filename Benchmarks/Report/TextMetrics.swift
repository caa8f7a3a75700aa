/// The width of a text, so that a drawing can keep its texts apart without a browser.
///
/// The widths are those of DejaVu Sans, the widest of the fonts that `system-ui` usually resolves to: a text that
/// fits in it also fits in the others. Kerning only makes it narrower.
package enum TextMetrics {
    /// The size of a class of text in pixels, and whether it is bold.
    package static func font(ofClass name: String) -> (size: Double, isBold: Bool) {
        switch name {
        case "title": (14, true)
        case "strong": (12, true)
        case "small": (11, false)
        default: (12, false)
        }
    }

    /// The width of a line of text in pixels.
    package static func width(_ text: String, class name: String = "") -> Double {
        let font = font(ofClass: name)
        let widths = font.isBold ? bold : regular
        let hundredths = text.unicodeScalars.reduce(0) { sum, scalar in
            let place = Int(scalar.value) - 32
            return sum + (widths.indices.contains(place) ? widths[place] : wide)
        }
        return Double(hundredths) / 100 * font.size
    }

    /// The text, or its beginning and an ellipsis, so that it is no wider than `width`.
    package static func fit(_ text: String, into width: Double, class name: String = "") -> String {
        if Self.width(text, class: name) <= width { return text }
        var start = text[...]
        while !start.isEmpty, Self.width(start + "…", class: name) > width { start.removeLast() }
        return start.isEmpty ? "" : start + "…"
    }

    /// The width of a character outside ASCII: an em.
    private static let wide = 100

    /// In hundredths of an em, from the space to the tilde.
    private static let regular = [
        32, 41, 46, 84, 64, 96, 78, 28, 40, 40, 50, 84, 32, 37, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64, 64,
        64,
        34, 34, 84, 84, 84, 54, 100, 69, 69, 70, 78, 64, 58, 78, 76, 30, 30, 66, 56, 87, 75, 79, 61, 79, 70,
        64, 62, 74, 69, 99, 69, 62, 69, 40, 34, 40, 84, 50, 50, 62, 64, 55, 64, 62, 36, 64, 64, 28, 28, 58,
        28,
        98, 64, 62, 64, 64, 42, 53, 40, 64, 60, 82, 60, 60, 53, 64, 34, 64, 84,
    ]
    private static let bold = [
        35, 46, 53, 84, 70, 101, 88, 31, 46, 46, 53, 84, 38, 42, 38, 37, 70, 70, 70, 70, 70, 70, 70, 70, 70,
        70,
        40, 40, 84, 84, 84, 59, 100, 78, 77, 74, 83, 69, 69, 83, 84, 38, 38, 78, 64, 100, 84, 86, 74, 86, 78,
        73,
        69, 82, 78, 111, 78, 73, 73, 46, 37, 46, 84, 50, 50, 68, 72, 60, 72, 68, 44, 72, 72, 35, 35, 67, 35,
        105,
        72, 69, 72, 72, 50, 60, 48, 72, 66, 93, 65, 66, 59, 72, 37, 72, 84,
    ]
}
