/// The purpose of an instruction, by the function that contains it.
public enum CountCategory: String, CaseIterable, Sendable {
    /// The code of the workload, in place of a user's: its loop and its closures, with everything inlined into
    /// them.
    case workload
    /// The layers in Swift: Scheduling, CompositeOperations, Commands, Transactions, Actions.
    case layers
    /// The scheduler in C, and liburcu.
    case scheduler
    /// Allocating and freeing: the allocator, and the runtime functions that call it.
    case allocation
    /// Counting references.
    case references
    /// Checking exclusive access.
    case exclusivity
    /// Swift tasks: the runtime of concurrency.
    case tasks
    /// The rest of Swift's runtime: metadata, casts, witnesses of values.
    case runtime
    /// Collections and other types of the standard library.
    case library
    /// The C library, Dispatch, the dynamic linker, and everything else.
    case system

    /// - Parameter function: by its object's file name and its symbol.
    package init(_ function: CallgrindProfile.Function) {
        let name = function.name
        switch function.object {
        case let object where Self.isAllocator(object): self = .allocation
        case let object where object.hasPrefix("liburcu"): self = .scheduler
        case let object where object.hasPrefix("libswift_Concurrency"): self = .tasks
        case let object where object.hasPrefix("libswiftCore"): self = Self(ofRuntime: name)
        case CountingRun.programName: self = Self(ofProgram: name)
        default: self = .system
        }
    }

    static func isAllocator(_ object: String) -> Bool { object.hasPrefix("libjemalloc") }

    private init(ofRuntime name: String) {
        self =
            if name.hasPrefix("$s") {
                .library
            } else if Self.allocating.contains(where: name.contains) {
                .allocation
            } else if Self.counting.contains(where: name.contains) {
                .references
            } else if name.contains("Access") && !name.contains("Metadata") {
                .exclusivity
            } else {
                .runtime
            }
    }

    private static let allocating = [
        "swift_slowAlloc", "swift_slowDealloc", "swift_allocObject", "swift_dealloc",
        "_swift_release_dealloc",
        "swift_allocBox", "swift_initStackObject",
    ]

    private static let counting = [
        "swift_retain", "swift_release", "swift_bridgeObject", "swift_unknownObject", "swift_weak",
        "swift_unowned", "swift_nonatomic", "RefCount", "swift_isUniquelyReferenced",
    ]

    /// In a mangled name the module comes first, with its length: "$s10Scheduling...".
    private init(ofProgram name: String) {
        guard name.hasPrefix("$s") else {
            self = name.contains("swift_") ? .runtime : name.hasPrefix("_Z") ? .system : .scheduler
            return
        }
        let rest = name.dropFirst(2)
        let digits = rest.prefix { $0.isNumber }
        guard let length = Int(digits) else {
            // $ss, $sS: the standard library's, specialised; $sI: a thunk from one calling convention to another.
            self = rest.hasPrefix("I") ? .layers : .library
            return
        }
        let module = String(rest.dropFirst(digits.count).prefix(length))
        self =
            Self.workloadModules.contains(module) ? .workload : module.hasPrefix("NIO") ? .system : .layers
    }

    private static let workloadModules: Set = ["BenchmarkPeers", "BenchmarkCore", "bench_runner"]
}
