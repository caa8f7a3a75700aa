// swift-tools-version: 6.2

import Foundation
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

/// oneTBB is a peer of the benchmarks when it is installed.
let hasTBB = FileManager.default.fileExists(atPath: "/usr/include/tbb/task_group.h")

let package = Package(
    name: "CompositeOperations",
    products: [
        .library(name: "CScheduler", targets: ["CScheduler"]),
        .library(name: "Scheduling", targets: ["Scheduling"]),
        .library(name: "PropertyTesting", targets: ["PropertyTesting"]),
        .library(name: "PropertyTestingSupport", targets: ["PropertyTestingSupport"]),
        .executable(name: "benchmarks", targets: ["benchmarks"]),
        .executable(name: "bench-runner", targets: ["bench-runner"]),
    ],
    traits: [
        .default(enabledTraits: ["NIO"]),
        .trait(
            name: "NIO", description: "NIOThreadPool is a peer of the benchmarks; it takes a minute to build."
        ),
    ],
    dependencies: [
        // All of these are the benchmarks': who depends on a library of this package fetches and builds none of them.
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
        .package(url: "https://github.com/hummingbird-project/swift-mustache", from: "2.1.1"),
        .package(url: "https://github.com/onevcat/Rainbow", from: "4.2.2"),
        .package(url: "https://github.com/ordo-one/TextTable", from: "0.0.2"),
    ],
    targets: [
        .systemLibrary(name: "CURCU", pkgConfig: "liburcu-bp", providers: [.apt(["liburcu-dev"])]),
        .systemLibrary(name: "CJemalloc", pkgConfig: "jemalloc", providers: [.apt(["libjemalloc-dev"])]),
        .target(
            name: "CScheduler",
            dependencies: ["CURCU"],
            path: "CScheduler",
            exclude: ["DESIGN.md"],
            sources: ["src"],
            publicHeadersPath: "include",
            cSettings: warnings + [.define("_GNU_SOURCE")],
            linkerSettings: [.linkedLibrary("urcu-bp")]
        ),
        .target(
            name: "Scheduling",
            dependencies: ["CScheduler"],
            swiftSettings: settings + [.strictMemorySafety()]
        ),

        // Benchmarks: the launcher, which everybody can build, and the program that measures.
        .executableTarget(name: "benchmarks", path: "Benchmarks/Launcher", swiftSettings: settings),
        .executableTarget(
            name: "bench-runner",
            dependencies: [
                "AllocationCounter", "BenchmarkCore", "BenchmarkHarness", "BenchmarkPeers", "BenchmarkReport",
                "CJemalloc",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Benchmarks/Runner",
            swiftSettings: settings
        ),
        .target(name: "BenchmarkCore", path: "Benchmarks/Core", swiftSettings: settings),
        .target(
            name: "BenchmarkHarness",
            dependencies: [
                "AllocationCounter", "BenchmarkCore",
                .product(name: "Histogram", package: "hdrhistogram-swift"),
            ],
            path: "Benchmarks/Harness",
            swiftSettings: settings
        ),
        .target(
            name: "BenchmarkReport",
            dependencies: [
                "BenchmarkCore", "BenchmarkHarness",
                .product(name: "Mustache", package: "swift-mustache"),
                .product(name: "Rainbow", package: "Rainbow"),
                .product(name: "TextTable", package: "TextTable"),
            ],
            path: "Benchmarks/Report",
            swiftSettings: settings
        ),
        .target(
            name: "BenchmarkPeers",
            dependencies: [
                "BenchmarkCore", "GlibcExtras", "PthreadPool", "Scheduling", "TBBPeer",
                .product(name: "NIOPosix", package: "swift-nio", condition: .when(traits: ["NIO"])),
            ],
            path: "Benchmarks/Peers",
            swiftSettings: settings
        ),
        .systemLibrary(name: "GlibcExtras", path: "Benchmarks/GlibcExtras"),
        .target(name: "PthreadPool", path: "Benchmarks/PthreadPool", sources: ["src"], cSettings: warnings),
        .target(
            name: "TBBPeer",
            path: "Benchmarks/TBBPeer",
            sources: ["src"],
            linkerSettings: hasTBB ? [.linkedLibrary("tbb")] : []
        ),
        .target(
            name: "AllocationCounter", dependencies: ["CJemalloc"], path: "Benchmarks/AllocationCounter",
            publicHeadersPath: "include", cSettings: warnings
        ),

        // Verification: for our tests, and for those of users.
        .target(name: "PropertyTesting", swiftSettings: settings),
        .target(name: "PropertyTestingSupport", dependencies: ["PropertyTesting"], swiftSettings: settings),
        // Nothing that a test links may link jemalloc: the sanitizers do not bear it.
        .testTarget(
            name: "BenchmarkTests", dependencies: ["BenchmarkCore", "BenchmarkHarness", "BenchmarkReport"],
            swiftSettings: settings
        ),
        .testTarget(
            name: "PropertyTestingTests", dependencies: ["PropertyTesting", "PropertyTestingSupport"],
            swiftSettings: settings
        ),
        .testTarget(
            name: "SchedulingTests",
            dependencies: ["CScheduler", "PropertyTesting", "PropertyTestingSupport", "Scheduling"],
            swiftSettings: settings
        ),
    ],
    swiftLanguageModes: [.v6],
    cLanguageStandard: .gnu17,
    cxxLanguageStandard: .gnucxx17
)
