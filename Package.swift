// swift-tools-version: 6.3

import PackageDescription

let warnings: [CSetting] = [
    .treatAllWarnings(as: .error),
    .enableWarning("all"), .enableWarning("extra"), .enableWarning("conversion"), .enableWarning("shadow"),
    .enableWarning("missing-prototypes"), .enableWarning("strict-prototypes"),
]

/// Every Swift target is built with the same settings, so that a file can move between targets unchanged.
let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// Products of other packages, which only the trait `Ecosystem` fetches.
func ecosystem(_ products: [(name: String, package: String)]) -> [Target.Dependency] {
    products.map {
        .product(name: $0.name, package: $0.package, condition: .when(traits: ["Ecosystem"]))
    }
}

let package = Package(
    name: "CompositeOperations",
    products: [
        .library(name: "CScheduler", targets: ["CScheduler"]),
        .library(name: "Scheduling", targets: ["Scheduling"]),
        .library(name: "SchedulingDefaultExecutor", targets: ["SchedulingDefaultExecutor"]),
        .library(name: "CompositeOperations", targets: ["CompositeOperations"]),
        .library(name: "CompositeOperationsFoundation", targets: ["CompositeOperationsFoundation"]),
        .library(name: "Transactions", targets: ["Transactions"]),
        .library(name: "Commands", targets: ["Commands"]),
        .library(name: "CommandJournal", targets: ["CommandJournal"]),
        .library(name: "Actions", targets: ["Actions"]),
        .library(name: "Observability", targets: ["Observability"]),
        .library(name: "Admission", targets: ["Admission"]),
        .library(name: "SchedulingEcosystem", targets: ["SchedulingEcosystem"]),
        .library(name: "ActionTesting", targets: ["ActionTesting"]),
        .library(name: "PropertyTesting", targets: ["PropertyTesting"]),
        .library(name: "PropertyTestingSupport", targets: ["PropertyTestingSupport"]),
        .library(name: "CExplorer", targets: ["CExplorer"]),
        .library(name: "ThreadExploration", targets: ["ThreadExploration"]),
        .library(name: "ConformanceTesting", targets: ["ConformanceTesting"]),
        .library(name: "ConformanceSubjects", targets: ["ConformanceSubjects"]),
        .executable(name: "benchmarks", targets: ["benchmarks"]),
        .executable(name: "verify", targets: ["verify"]),
    ],
    traits: [
        .default(enabledTraits: ["Journal", "Liburcu"]),
        .trait(
            name: "Liburcu",
            description:
                "Grace periods are liburcu's; without it they are ours, and nothing is to be installed."),
        .trait(
            name: "Journal",
            description: "CommandJournal, with SQLite; who leaves it out fetches no other package."),
        .trait(
            name: "Ecosystem",
            description: "SchedulingEcosystem: metrics, logs, spans and services; off by default."),
    ],
    dependencies: [
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.7.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.3.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.9.0"),
    ],
    targets: [
        .systemLibrary(
            name: "CURCU", pkgConfig: "liburcu-bp",
            providers: [.apt(["liburcu-dev"]), .yum(["userspace-rcu-devel"])]),
        .target(
            name: "CScheduler",
            dependencies: [.target(name: "CURCU", condition: .when(traits: ["Liburcu"]))],
            path: "CScheduler",
            exclude: ["DESIGN.md", "Makefile"],
            sources: ["src"],
            publicHeadersPath: "include",
            cSettings: warnings + [
                .define("_GNU_SOURCE"), .define("CSCHED_LIBURCU", .when(traits: ["Liburcu"])),
            ],
            linkerSettings: [.linkedLibrary("urcu-bp", .when(traits: ["Liburcu"]))]
        ),
        // The Swift runtime's knowledge of task-local values.
        .target(name: "CBoundValues", cSettings: warnings + [.define("_GNU_SOURCE")]),
        // How a Swift closure is called whose types are not known.
        .target(name: "CBlockCalls", cSettings: warnings),
        // The hooks by which the Swift runtime hands jobs of tasks to an executor that explores their orders.
        .target(name: "CTaskHooks", cSettings: warnings + [.define("_GNU_SOURCE")]),
        // Where another thread is.
        .target(name: "CThreadStack", cSettings: warnings + [.define("_GNU_SOURCE")]),
        // The word that says whether what begins is kept for dumps.
        .target(name: "CInspection", cSettings: warnings + [.define("_GNU_SOURCE")]),
        // The basics that every module of ours may use, and nobody else sees.
        .target(
            name: "CompositeOperationsBasics", dependencies: ["CInspection"], swiftSettings: settings),
        .target(
            name: "Scheduling",
            dependencies: ["CBoundValues", "CompositeOperationsBasics", "CScheduler"],
            swiftSettings: settings + [.strictMemorySafety()]
        ),
        // Apart: its means are experimental interface of the library.
        .target(
            name: "SchedulingDefaultExecutor",
            dependencies: ["CompositeOperationsBasics", "Scheduling"],
            swiftSettings: settings
        ),
        // The common part of operations, commands and actions; each of them exports the parts of it that users see.
        .target(
            name: "Runs",
            dependencies: ["CInspection", "CScheduler", "CompositeOperationsBasics", "Scheduling"],
            exclude: ["DESIGN.md"], swiftSettings: settings
        ),
        .target(
            name: "CompositeOperations",
            dependencies: [
                "CBlockCalls", "CInspection", "CompositeOperationsBasics", "Runs", "Scheduling",
            ],
            exclude: ["DESIGN.md"],
            swiftSettings: settings
        ),
        // Apart, so that the core does without Foundation.
        .target(
            name: "CompositeOperationsFoundation",
            dependencies: ["CompositeOperations", "CompositeOperationsBasics", "Runs"],
            swiftSettings: settings
        ),
        .target(
            name: "Commands",
            dependencies: ["CInspection", "CompositeOperationsBasics", "Runs", "Scheduling"],
            exclude: ["DESIGN.md"], swiftSettings: settings
        ),
        .target(
            name: "CommandJournal",
            dependencies: [
                "CInspection", "CompositeOperationsBasics", "Commands", "Runs",
                .product(name: "GRDB", package: "GRDB.swift", condition: .when(traits: ["Journal"])),
                .product(name: "GRDBSQLite", package: "GRDB.swift", condition: .when(traits: ["Journal"])),
            ],
            exclude: ["DESIGN.md"], swiftSettings: settings
        ),
        .target(
            name: "Actions",
            dependencies: ["CInspection", "CompositeOperationsBasics", "Runs", "Scheduling"],
            exclude: ["DESIGN.md"], swiftSettings: settings
        ),
        // For the tests of those who use actions.
        .target(
            name: "ActionTesting", dependencies: ["Actions"],
            swiftSettings: settings),

        .target(
            name: "Transactions", dependencies: ["CInspection", "CompositeOperationsBasics"],
            exclude: ["DESIGN.md"], swiftSettings: settings),

        // A limit to what runs, and its shares, in front of a scheduler.
        .target(
            name: "Admission",
            dependencies: ["CInspection", "CompositeOperationsBasics", "Runs", "Scheduling"],
            exclude: ["DESIGN.md"], swiftSettings: settings),

        // Everything that is alive, as text and JSON. Knows no operations: they are described by their own modules.
        .target(
            name: "Observability",
            dependencies: [
                "CInspection", "CScheduler", "CThreadStack", "CompositeOperationsBasics", "Scheduling",
            ],
            exclude: ["DESIGN.md"], swiftSettings: settings),

        // Metrics, logs, spans and a service, for servers. Empty without its trait.
        .target(
            name: "SchedulingEcosystem",
            dependencies: [
                "CompositeOperationsBasics", "Observability", "Runs", "Scheduling",
            ]
                + ecosystem([
                    ("Logging", "swift-log"), ("CoreMetrics", "swift-metrics"),
                    ("Tracing", "swift-distributed-tracing"), ("ServiceLifecycle", "swift-service-lifecycle"),
                ]),
            exclude: ["DESIGN.md"], swiftSettings: settings),

        // Only the launchers: what they launch is the package in Benchmarks, with dependencies of its own, so that who depends
        // on this package fetches nothing else.
        .target(name: "Launching", path: "Benchmarks/Launching", swiftSettings: settings),
        .executableTarget(
            name: "benchmarks", dependencies: ["Launching"], path: "Benchmarks/Launcher",
            exclude: ["Answers"],
            swiftSettings: settings),
        .executableTarget(
            name: "verify", dependencies: ["Launching"], path: "Benchmarks/VerifyLauncher",
            swiftSettings: settings),

        // Verification: for our tests, and for those of users.
        .target(
            name: "PropertyTesting", dependencies: ["CompositeOperationsBasics", "CTaskHooks"],
            swiftSettings: settings),
        .target(name: "PropertyTestingSupport", dependencies: ["PropertyTesting"], swiftSettings: settings),
        // Programs in C and C++ under each schedule within bounds, and weak memory.
        .target(
            name: "CExplorer", cSettings: warnings + [.define("_GNU_SOURCE")]),
        // The same in Swift Testing.
        .target(
            name: "ThreadExploration", dependencies: ["CExplorer", "PropertyTesting"], swiftSettings: settings
        ),
        // Laws for schedulers of all kinds, and what breaks each.
        .target(name: "ConformanceTesting", dependencies: ["PropertyTesting"], swiftSettings: settings),
        // Our schedulers, and those that come with Swift, as what the laws are asked of.
        .target(
            name: "ConformanceSubjects",
            dependencies: ["CompositeOperations", "ConformanceTesting", "PropertyTesting", "Scheduling"],
            swiftSettings: settings),
        .testTarget(
            name: "ConformanceTestingTests",
            dependencies: [
                "ConformanceSubjects", "ConformanceTesting", "PropertyTesting", "PropertyTestingSupport",
            ],
            swiftSettings: settings
        ),
        // Programs of threads, some of them wrong.
        .target(
            name: "ExploredPrograms", dependencies: ["CExplorer"], path: "Tests/ExploredPrograms"),
        .testTarget(
            name: "ThreadExplorationTests",
            dependencies: ["CExplorer", "ExploredPrograms", "PropertyTesting", "ThreadExploration"],
            swiftSettings: settings
        ),
        .testTarget(
            name: "PropertyTestingTests", dependencies: ["PropertyTesting", "PropertyTestingSupport"],
            swiftSettings: settings
        ),
        // Helpers shared by the test targets below.
        .target(
            name: "CompositeOperationsTestSupport",
            dependencies: [
                "CompositeOperations", "CompositeOperationsBasics", "PropertyTesting", "Scheduling",
            ],
            path: "Tests/TestSupport",
            swiftSettings: settings
        ),
        .testTarget(
            name: "CompositeOperationsTests",
            dependencies: [
                "CompositeOperations", "PropertyTesting", "PropertyTestingSupport", "Runs",
                "Scheduling", "CompositeOperationsTestSupport",
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "CompositeOperationsFoundationTests",
            dependencies: [
                "CompositeOperations", "CompositeOperationsFoundation", "PropertyTesting",
                "PropertyTestingSupport", "CompositeOperationsTestSupport",
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "CommandsTests",
            dependencies: [
                "CompositeOperationsBasics", "Commands", "CompositeOperations",
                "PropertyTesting",
                "PropertyTestingSupport", "Scheduling", "CompositeOperationsTestSupport",
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "CommandJournalTests",
            dependencies: [
                "CommandJournal", "Commands", "CompositeOperationsTestSupport", "PropertyTesting",
                "PropertyTestingSupport",
                .product(name: "GRDB", package: "GRDB.swift", condition: .when(traits: ["Journal"])),
            ],
            swiftSettings: settings
        ),
        // The program that CommandJournalTests kills.
        .executableTarget(
            name: "JournalCrash",
            dependencies: ["CommandJournal", "Commands", "CompositeOperations", "PropertyTesting", "Runs"],
            path: "Tests/JournalCrash",
            swiftSettings: settings
        ),
        .testTarget(
            name: "TransactionsTests",
            dependencies: [
                "PropertyTesting", "PropertyTestingSupport", "CompositeOperationsTestSupport", "Transactions",
            ],
            swiftSettings: settings
        ),
        // As programs are that were written for the first version of its interface.
        .testTarget(
            name: "TransactionsCompatibilityTests",
            dependencies: ["CompositeOperationsTestSupport", "PropertyTestingSupport", "Transactions"],
            swiftSettings: [.swiftLanguageMode(.v5)]
        ),
        .testTarget(
            name: "ActionsTests",
            dependencies: [
                "ActionTesting", "Actions", "Commands", "CompositeOperations", "PropertyTesting",
                "PropertyTestingSupport", "Scheduling", "CompositeOperationsTestSupport",
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "AdmissionTests",
            dependencies: [
                "Admission", "CompositeOperationsBasics", "CompositeOperationsTestSupport", "Observability",
                "PropertyTesting",
                "PropertyTestingSupport", "Scheduling",
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "ObservabilityTests",
            dependencies: [
                "Actions", "Commands", "CompositeOperations", "CompositeOperationsBasics",
                "CompositeOperationsTestSupport", "Observability", "PropertyTesting",
                "PropertyTestingSupport",
                "Scheduling", "Transactions",
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "SchedulingEcosystemTests",
            dependencies: [
                "CommandJournal", "Commands", "CompositeOperations", "CompositeOperationsTestSupport",
                "Observability", "PropertyTesting", "PropertyTestingSupport", "Scheduling",
                "SchedulingEcosystem",
            ]
                + ecosystem([
                    ("InMemoryLogging", "swift-log"), ("MetricsTestKit", "swift-metrics"),
                    ("InMemoryTracing", "swift-distributed-tracing"),
                    ("ServiceLifecycle", "swift-service-lifecycle"),
                    ("ServiceLifecycleTestKit", "swift-service-lifecycle"),
                    ("UnixSignals", "swift-service-lifecycle"),
                ]),
            swiftSettings: settings
        ),
        .testTarget(
            name: "SchedulingTests",
            dependencies: [
                "CScheduler", "CompositeOperationsTestSupport", "PropertyTesting", "PropertyTestingSupport",
                "Scheduling",
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "SchedulingDefaultExecutorTests",
            dependencies: ["Scheduling", "SchedulingDefaultExecutor"],
            swiftSettings: settings
        ),
    ],
    swiftLanguageModes: [.v6],
    cLanguageStandard: .gnu17,
    cxxLanguageStandard: .gnucxx17
)
