// swift-tools-version: 6.3

// How the core is attacked: a package of its own, so that whoever depends on the main one builds nothing of it. The core's sources
// are here by a link, and are built for the explorer.

import PackageDescription

let warnings: [CSetting] = [
    .treatAllWarnings(as: .error),
    .enableWarning("all"), .enableWarning("extra"), .enableWarning("conversion"), .enableWarning("shadow"),
    .enableWarning("missing-prototypes"), .enableWarning("strict-prototypes"),
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
        // Runs threads as fibres, under each schedule within bounds.
        .target(name: "Explorer", path: "Explorer", cSettings: warnings),
        // What its memory model reaches, and programs with a defect each.
        .target(
            name: "ExplorerLitmus", dependencies: ["Explorer"], path: "ExplorerLitmus", cSettings: warnings),
        .target(
            name: "ExplorerScenarios", dependencies: ["Explorer"], path: "ExplorerScenarios",
            exclude: ["torn.h"],
            cSettings: warnings + [
                .define("_GNU_SOURCE"), .define("CSCHED_PORT", to: "\"port_explorer.h\""),
                .headerSearchPath("."), .headerSearchPath("../CScheduler/src"),
                .headerSearchPath("../CScheduler/include"),
            ]
        ),
        .executableTarget(
            name: "explore", dependencies: ["Explorer", "ExplorerLitmus", "ExplorerScenarios"],
            path: "explore",
            cSettings: warnings + [.define("_GNU_SOURCE")]
        ),
        // Breaks the core, and asks the explorer.
        .executableTarget(name: "mutate", path: "mutate", swiftSettings: settings),
        .testTarget(
            name: "ExplorerTests", dependencies: ["Explorer", "ExplorerLitmus"], path: "Tests/ExplorerTests",
            swiftSettings: settings
        ),
    ]
)
