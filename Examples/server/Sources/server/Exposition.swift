// Exposition.swift - a metrics factory that writes the metrics in Prometheus' text format, a page for each scrape.

import CoreMetrics
import Synchronization

/// Keeps the value of each series, and writes all of them.
final class Exposition: MetricsFactory {
    private struct Key: Hashable {
        let name: String
        let labels: String
    }

    fileprivate enum Value {
        case counter(Int64)
        case gauge(Double)
        /// Cumulative buckets, as the format requires.
        case times(buckets: [Int], sum_ns: Int64, count: Int)
    }

    /// Upper bounds in seconds; the last bucket, without a bound, counts all.
    fileprivate static let bounds = [0.000_01, 0.000_1, 0.001, 0.01, 0.1, 1, 10]

    private let values = Mutex<[Key: Value]>([:])

    /// A page for a scrape.
    var text: String {
        let values = values.withLock { $0 }
        var lines: [String] = []
        for (name, series) in Dictionary(grouping: values, by: \.key.name).sorted(by: { $0.key < $1.key }) {
            lines.append("# TYPE \(name) \(series[0].value.type)")
            for (key, value) in series.sorted(by: { $0.key.labels < $1.key.labels }) {
                lines += value.lines(name, key.labels)
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    fileprivate func change(_ name: String, _ labels: String, _ body: (inout Value?) -> Void) {
        values.withLock { body(&$0[Key(name: name, labels: labels)]) }
    }

    private static func labels(_ dimensions: [(String, String)]) -> String {
        dimensions.map { name, value in
            let escaped = value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing(
                "\n", with: "\\n")
            return "\(name)=\"\(escaped)\""
        }.joined(separator: ",")
    }

    // MARK: MetricsFactory

    func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        Series(exposition: self, name: label, labels: Self.labels(dimensions))
    }
    func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        Series(exposition: self, name: label, labels: Self.labels(dimensions))
    }
    func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        Series(exposition: self, name: label, labels: Self.labels(dimensions))
    }
    func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        Series(exposition: self, name: label, labels: Self.labels(dimensions))
    }
    func destroyCounter(_ handler: any CounterHandler) { destroy(handler) }
    func destroyMeter(_ handler: any MeterHandler) { destroy(handler) }
    func destroyTimer(_ handler: any TimerHandler) { destroy(handler) }
    func destroyRecorder(_ handler: any RecorderHandler) { destroy(handler) }

    private func destroy(_ handler: AnyObject) {
        if let series = handler as? Series { change(series.name, series.labels) { $0 = nil } }
    }

    private final class Series: CounterHandler, MeterHandler, TimerHandler, RecorderHandler {
        let exposition: Exposition
        let name: String
        let labels: String

        init(exposition: Exposition, name: String, labels: String) {
            (self.exposition, self.name, self.labels) = (exposition, name, labels)
        }

        private func change(_ body: (inout Value?) -> Void) { exposition.change(name, labels, body) }

        func increment(by amount: Int64) {
            change { value in
                if case .counter(let former)? = value {
                    value = .counter(former + amount)
                } else {
                    value = .counter(amount)
                }
            }
        }
        func reset() { change { $0 = .counter(0) } }
        func set(_ value: Int64) { change { $0 = .gauge(Double(value)) } }
        func set(_ value: Double) { change { $0 = .gauge(value) } }
        func increment(by amount: Double) { change { $0 = .gauge(($0?.number ?? 0) + amount) } }
        func decrement(by amount: Double) { increment(by: -amount) }
        func record(_ value: Int64) { set(value) }
        func record(_ value: Double) { set(value) }
        func recordNanoseconds(_ duration: Int64) {
            change { value in
                var (buckets, sum_ns, count) = (
                    Array(repeating: 0, count: Exposition.bounds.count), Int64(0), 0
                )
                if case .times(let kept)? = value { (buckets, sum_ns, count) = kept }
                for (index, bound) in Exposition.bounds.enumerated() where Double(duration) / 1e9 <= bound {
                    buckets[index] += 1
                }
                value = .times(buckets: buckets, sum_ns: sum_ns + duration, count: count + 1)
            }
        }
    }
}

extension Exposition.Value {
    fileprivate var type: String {
        switch self {
        case .counter: "counter"
        case .gauge: "gauge"
        case .times: "histogram"
        }
    }

    fileprivate var number: Double? { if case .gauge(let value) = self { value } else { nil } }

    fileprivate func lines(_ name: String, _ labels: String) -> [String] {
        let braced = labels.isEmpty ? "" : "{\(labels)}"
        switch self {
        case .counter(let value): return ["\(name)\(braced) \(value)"]
        case .gauge(let value): return ["\(name)\(braced) \(value)"]
        case .times(let buckets, let sum_ns, let count):
            let more = labels.isEmpty ? "" : labels + ","
            var lines = zip(Exposition.bounds, buckets).map { bound, bucket in
                "\(name)_bucket{\(more)le=\"\(bound)\"} \(bucket)"
            }
            lines.append("\(name)_bucket{\(more)le=\"+Inf\"} \(count)")
            lines.append("\(name)_sum\(braced) \(Double(sum_ns) / 1e9)")
            lines.append("\(name)_count\(braced) \(count)")
            return lines
        }
    }
}
