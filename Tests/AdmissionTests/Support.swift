// Support - helpers shared by the tests of admission.

import Admission
import CompositeOperationsTestSupport
import Glibc
import PropertyTesting
import Scheduling

extension Double {
    static func log(_ value: Double) -> Double { Glibc.log(value) }
}

/// A gate on its own scheduler, with one slot held until it is released.
struct HeldGate {
    let scheduler: Scheduler
    let gate: AdmissionGate
    private let held = Gate()

    init(
        workers: Int = 1, width: Int = 1, charging: AdmissionGate.Charging = .operations,
        name: String = "held"
    ) throws {
        scheduler = try Scheduler(.init(workers: workers, name: name))
        gate = AdmissionGate(on: scheduler, width: width, charging: charging)
        let holder = gate.tenant("holder")
        for _ in 0..<width {
            let begun = Gate()
            try holder.submit { [held] in
                begun.open()
                held.wait()
            }
            begun.wait()
        }
    }

    func letGo() { held.open() }

    /// Releases the slot, waits until the gate is idle, and shuts the scheduler down.
    func end() async throws {
        letGo()
        await gate.idle()
        try await scheduler.shutdown()
    }
}

extension TenantFigures {
    /// Whether every request is accounted for.
    var addUp: Bool { asked == started + waiting + refused + cancelled && started == ended + running }
}

struct Unexpected: Error {}
