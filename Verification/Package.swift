// swift-tools-version: 6.3

// Attacks on the core, in a separate package, so that users of the main package build none of it. The core's sources are
// linked here, and are built for the explorer.

import PackageDescription

let warnings: [CSetting] = [
    .treatAllWarnings(as: .error),
    .enableWarning("all"), .enableWarning("extra"), .enableWarning("conversion"), .enableWarning("shadow"),
    .enableWarning("missing-prototypes"), .enableWarning("strict-prototypes"),
]

let explored: [CSetting] =
    warnings + [
        .define("_GNU_SOURCE"), .define("CSCHED_PORT", to: "\"port_explorer.h\""),
        .headerSearchPath("../ExplorerScenarios"), .headerSearchPath("../CScheduler/src"),
        .headerSearchPath("../CScheduler/include"),
    ]

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
    name: "Verification",
    products: [
        .executable(name: "explore", targets: ["explore"]),
        .executable(name: "mutate", targets: ["mutate"]),
    ],
    targets: [
        // Through a symbolic link: the explorer, which is also a product of the main package.
        .target(name: "CExplorer", path: "CExplorer", cSettings: warnings + [.define("_GNU_SOURCE")]),
        // The outcomes that its memory model reaches, and programs with one defect each.
        .target(
            name: "ExplorerLitmus", dependencies: ["CExplorer"], path: "ExplorerLitmus", cSettings: warnings),
        // The core, through a symbolic link, with its plain accesses checked for races.
        .target(
            name: "ExploredCore", dependencies: ["CExplorer"], path: "ExploredCore",
            cSettings: explored + [.unsafeFlags(["-fsanitize-coverage=func,trace-loads,trace-stores"])]
        ),
        .target(
            name: "ExplorerScenarios", dependencies: ["CExplorer", "ExploredCore"], path: "ExplorerScenarios",
            exclude: ["torn.h"], cSettings: explored
        ),
        .executableTarget(
            name: "explore", dependencies: ["CExplorer", "ExplorerLitmus", "ExplorerScenarios"],
            path: "explore",
            cSettings: warnings + [.define("_GNU_SOURCE")]
        ),
        // Breaks the core, and runs the explorer on it.
        .executableTarget(name: "mutate", path: "mutate", swiftSettings: settings),
        .testTarget(
            name: "ExplorerTests", dependencies: ["CExplorer", "ExplorerLitmus"], path: "Tests/ExplorerTests",
            swiftSettings: settings
        ),
    ]
)
