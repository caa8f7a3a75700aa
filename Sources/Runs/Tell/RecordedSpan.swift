// RecordedSpan.swift - the work of a run, as a slice on the track of its thread, when events are recorded.

internal import CScheduler

/// A named interval of a thread's time, begun and ended on the same thread, while events are recorded.
package struct RecordedSpan {
    package static let beginKind: UInt32 = 33
    package static let endKind: UInt32 = 34

    private let name: UInt64
    private let number: UInt64

    /// Call only while `inspection_records()`; nil if recording has been turned off since.
    ///
    /// - Parameter number: distinguishes spans of the same name; 0 if that is not needed.
    package init?(_ name: @autoclosure () -> String, number: UInt64 = 0) {
        guard csched_recorder_is_on() else { return nil }
        let name = name()
        self.name = Self.kept.withLock { $0.address(of: name) }
        self.number = number
        csched_record(Self.beginKind, self.name, number)
    }

    package func end() { csched_record(Self.endKind, name, number) }

    /// Names that events point to. They are never freed, so their number is limited.
    private struct Names {
        private static let most = 10_000
        private var addresses: [String: UInt64] = [:]

        mutating func address(of name: String) -> UInt64 {
            if let address = addresses[name] { return address }
            if addresses.count >= Self.most, name != "others" { return address(of: "others") }
            let copy = UnsafeMutablePointer<UInt8>.allocate(capacity: name.utf8.count + 1)
            copy.initialize(repeating: 0, count: name.utf8.count + 1)
            for (index, byte) in name.utf8.enumerated() { copy[index] = byte }
            let address = UInt64(UInt(bitPattern: copy))
            addresses[name] = address
            return address
        }
    }

    private static let kept = Guarded(Names())
}
