/// The appearance of a peer in every drawing and legend: a colour and a shape, so that readers need not rely on either alone.
struct Look {
    enum Shape: CaseIterable { case circle, square, up, down, diamond, pentagon, ring }

    /// The number of the colour: the end of the classes `f0`, `s0`, `b0` and `k0`.
    let hue: Int
    let shape: Shape

    /// The look of a peer; a name has the same look in every run.
    static func of(_ name: String) -> Look {
        if let known = known[name] { return known }
        let sum = name.utf8.reduce(0) { ($0 &* 31 &+ Int($1)) % 1_009 }
        return Look(hue: 1 + sum % 7, shape: Shape.allCases[sum % Shape.allCases.count])
    }

    private static let known: [String: Look] = [
        "ours": Look(hue: 0, shape: .circle), "ours-again": Look(hue: 0, shape: .ring),
        "dispatch": Look(hue: 1, shape: .circle), "operationqueue": Look(hue: 2, shape: .square),
        "taskgroup": Look(hue: 3, shape: .up), "nio": Look(hue: 4, shape: .down),
        "pthread": Look(hue: 5, shape: .diamond), "tbb": Look(hue: 6, shape: .pentagon),
        "closures": Look(hue: 1, shape: .circle), "undomanager": Look(hue: 7, shape: .circle),
        "snapshot": Look(hue: 2, shape: .square), "old-values": Look(hue: 3, shape: .up),
        "mutex": Look(hue: 4, shape: .down), "flag": Look(hue: 5, shape: .diamond),
        "actor": Look(hue: 6, shape: .pentagon),
        "ours-bare": Look(hue: 0, shape: .ring), "ours-preferred": Look(hue: 0, shape: .ring),
        "ours-recorded": Look(hue: 0, shape: .ring),
        "serial": Look(hue: 8, shape: .ring), "floor": Look(hue: 8, shape: .square),
    ]

    /// Colours for light and dark backgrounds, also distinguishable with red-green colour blindness (after Okabe and
    /// Ito).
    private static let hues = [
        ("#007f5f", "#2fd0a5"), ("#0072b2", "#4fb0f0"), ("#c0569a", "#e79ccb"), ("#c47a00", "#f2b233"),
        ("#2a9fd6", "#9adcff"), ("#d0480a", "#ff8a50"), ("#6a51a3", "#b9a3f0"), ("#8a7a00", "#d9cc4f"),
        ("#777777", "#a0a0a0"),
    ]

    /// The style of all drawings: once on a page, and inside a drawing that is a separate file.
    static let style: String = {
        func colours(_ pick: ((String, String)) -> String) -> String {
            hues.enumerated().map { index, hue in
                let colour = pick(hue)
                return ".f\(index){fill:\(colour)}.s\(index){stroke:\(colour)}.b\(index){fill:\(colour)}"
                    + ".k\(index){color:\(colour)}"
            }.joined()
        }
        let lines = hues.indices.map { ".s\($0)" }.joined(separator: ",")
        let bands = hues.indices.map { ".b\($0)" }.joined(separator: ",")
        return """
            svg{font-family:system-ui,sans-serif}svg text{font-size:12px;fill:#1d2126}\
            svg .title{font-size:14px;font-weight:600}svg .small{font-size:11px;fill:#59616b}\
            svg .strong{font-weight:600}svg .paper{fill:#fff}\(lines){fill:none;stroke-width:2}\(bands){opacity:.14}\
            .thin{stroke-width:1.2;opacity:.75}.hollow{fill:#fff;stroke-width:1.8}\
            svg .grid{stroke:#e4e7eb}svg .one{stroke:#1d2126;stroke-width:1.2}svg .noise{fill:#8b939d;opacity:.28}\
            svg .ours{fill:#007f5f;opacity:.06}svg .theirs{fill:#d0480a;opacity:.08}\
            .ahead{fill:#007f5f;color:#007f5f}.level{fill:#9aa2ab;color:#6f7780}.behind{fill:#d0480a;color:#b93d05}\
            .unknown{fill:#d5d9de;color:#6f7780}\(colours { $0.0 })\
            @media(prefers-color-scheme:dark){svg text{fill:#e3e6ea}svg .small{fill:#9ba4ae}svg .paper{fill:#15181c}\
            .hollow{fill:#15181c}svg .grid{stroke:#2b3138}svg .one{stroke:#e3e6ea}\
            svg .ours{fill:#2fd0a5;opacity:.07}svg .theirs{fill:#ff8a50;opacity:.1}\
            .ahead{fill:#2fd0a5;color:#2fd0a5}.level{fill:#7b848e;color:#9ba4ae}.behind{fill:#ff8a50;color:#ff8a50}\
            .unknown{fill:#3a4149;color:#9ba4ae}\(colours { $0.1 })}
            """
    }()
}
