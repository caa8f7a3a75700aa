import BenchmarkCore
import BenchmarkHarness

/// A card for each workload: figures and costs of all its peers.
extension Page {
    /// The cards of a part.
    func cards(_ part: Summary.Part) -> [String: Any] {
        ["title": part.subject.title, "cards": part.rows.map(card)]
    }

    private func card(_ row: Summary.Row) -> [String: Any] {
        var peers: [(name: String, series: RunDocument.Series, ratio: Estimate?)] = [
            ("ours", row.series, nil)
        ]
        peers += row.peers.compactMap { peer in peer.series.map { (peer.name, $0, peer.ratio) } }
        let kinds = [
            ("cpu_ns_per_op", "CPU"), ("allocations_per_op", "allocations"),
            ("allocated_bytes_per_op", "bytes"), ("voluntary_switches_per_op", "switches"),
        ].filter { kind in peers.contains { $0.series.counts[kind.0] != nil } }
        let lines = peers.map { name, series, ratio -> [String: Any] in
            let figure = Estimate(series.restartMedians)
            return [
                "name": name,
                "link": [link(to: document.peers.first { $0.name == name }?.source)].compactMap(\.self),
                "figure": figure.map { Format.value($0.median, unit: row.workload.unit) } ?? "stopped",
                "ratio": ratio.map { Format.times($0.median) } ?? "",
                "interval": ratio.map { Format.interval($0.low, $0.high) } ?? series.stopped ?? "",
                "rounds": Self.sparkline(series, hue: Look.of(name).hue) ?? "",
            ]
        }
        let costs = peers.map { name, series, _ -> [String: Any] in
            let cells = kinds.map { key, _ -> [String: String] in
                let most = peers.compactMap { $0.series.counts[key] }.max() ?? 0
                guard let value = series.counts[key] else { return ["text": "", "width": "0"] }
                let text = key == "cpu_ns_per_op" ? Format.short(value, unit: "ns") : Format.number(value)
                let share = most > 0 ? max(0, value) / most * 100 : 0
                return ["text": text, "width": "\(Int(share.rounded()))"]
            }
            return ["name": name, "hue": "\(Look.of(name).hue)", "cells": cells]
        }
        return [
            "id": row.workload.id, "title": row.workload.title, "sentence": row.workload.sentence,
            "standing": row.standing.name, "n": Format.count(Double(row.n)), "verdict": summary.verdict(row),
            "floor": summary.floorSentence(row) ?? "", "lines": lines, "kinds": kinds.map(\.1),
            "costs": kinds.isEmpty ? [] : costs, "hasCosts": !kinds.isEmpty, "forms": forms(row),
            "others": otherCounts(row, without: kinds.map(\.0)),
        ]
    }

    /// Returns the forms of the peers that have a special one in this workload.
    private func forms(_ row: Summary.Row) -> [[String: String]] {
        document.peers.compactMap { peer in
            let isMeasured = summary.series(row.workload.id, n: row.n, peer: peer.name) != nil
            guard isMeasured, let form = peer.forms?[row.workload.id] else { return nil }
            return ["name": peer.name, "form": form]
        }
    }

    /// Returns the counts that appear in no table and no drawing.
    private func otherCounts(_ row: Summary.Row, without drawn: [String]) -> [String] {
        let others = row.series.counts.filter { key, _ in !drawn.contains(key) && !key.hasPrefix("latency_") }
            .sorted { $0.key < $1.key }
            .map { key, value in "\(key.replacing("_", with: " ")) \(Format.number(value))" }
        return others.isEmpty ? [] : [others.joined(separator: ", ")]
    }
}
