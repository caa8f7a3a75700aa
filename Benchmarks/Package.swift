// swift-tools-version: 6.3

// The programs behind `swift run benchmarks` and `swift run verify`. A separate package, so that its dependencies, the peers
// among them, do not affect users of the main package.

import Foundation
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

/// oneTBB is a peer if it is installed. SwiftPM caches the result of a manifest, but separately for each environment: the
/// launcher sets a variable to make SwiftPM evaluate the manifest again when oneTBB has been installed or removed.
let hasTBB = FileManager.default.fileExists(atPath: "/usr/include/tbb/task_group.h")

let package = Package(
    name: "Benchmarks",
    products: [
        .executable(name: "bench-runner", targets: ["bench-runner"]),
        .executable(name: "verify-runner", targets: ["verify-runner"]),
    ],
    traits: [
        .default(enabledTraits: ["Liburcu", "NIO"]),
        .trait(name: "Liburcu", description: "The scheduler's grace periods are those of liburcu."),
        .trait(name: "NIO", description: "NIOThreadPool is a peer; it takes a minute to build."),
    ],
    dependencies: [
        .package(
            name: "CompositeOperations", path: "..",
            traits: [.trait(name: "Liburcu", condition: .when(traits: ["Liburcu"]))]),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
        .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
        .package(url: "https://github.com/hummingbird-project/swift-mustache", from: "2.1.1"),
        .package(url: "https://github.com/onevcat/Rainbow", from: "4.2.2"),
        .package(url: "https://github.com/ordo-one/TextTable", from: "0.0.2"),
        .package(url: "https://github.com/swiftlang/swift-subprocess", from: "1.0.2", traits: []),
    ],
    targets: [
        .systemLibrary(
            name: "CJemalloc", path: "CJemalloc", pkgConfig: "jemalloc",
            providers: [.apt(["libjemalloc-dev"])]),
        .executableTarget(
            name: "bench-runner",
            dependencies: [
                "AllocationCounter", "BenchmarkComparison", "BenchmarkCore", "BenchmarkHarness",
                "BenchmarkPeers",
                "BenchmarkReport",
                .product(name: "CScheduler", package: "CompositeOperations"),
                .product(name: "Observability", package: "CompositeOperations"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Runner",
            swiftSettings: settings
        ),
        // Checks the laws of scheduling for the peers.
        .executableTarget(
            name: "verify-runner",
            dependencies: [
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "ConformanceSubjects", package: "CompositeOperations"),
                .product(name: "ConformanceTesting", package: "CompositeOperations"),
                .product(name: "PropertyTesting", package: "CompositeOperations"),
                .product(name: "Mustache", package: "swift-mustache"),
                .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["NIO"])),
                .product(name: "NIOPosix", package: "swift-nio", condition: .when(traits: ["NIO"])),
            ],
            path: "Verify",
            swiftSettings: settings
        ),
        .target(
            name: "BenchmarkComparison",
            dependencies: [
                "BenchmarkCore", "BenchmarkHarness",
                .product(name: "Subprocess", package: "swift-subprocess"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            path: "AB",
            swiftSettings: settings),
        .target(name: "BenchmarkCore", path: "Core", swiftSettings: settings),
        .target(
            name: "BenchmarkHarness",
            dependencies: [
                "BenchmarkCore", .product(name: "Histogram", package: "hdrhistogram-swift"),
                .product(name: "Subprocess", package: "swift-subprocess"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            path: "Harness",
            swiftSettings: settings
        ),
        .target(
            name: "BenchmarkReport",
            dependencies: [
                "BenchmarkComparison", "BenchmarkCore", "BenchmarkHarness",
                .product(name: "Mustache", package: "swift-mustache"),
                .product(name: "Rainbow", package: "Rainbow"),
                .product(name: "TextTable", package: "TextTable"),
            ],
            path: "Report",
            swiftSettings: settings
        ),
        .target(
            name: "BenchmarkPeers",
            dependencies: [
                "BenchmarkCore", "GlibcExtras", "MeasuredLoop", "PthreadPool", "TBBPeer",
                .product(name: "Actions", package: "CompositeOperations"),
                .product(name: "Commands", package: "CompositeOperations"),
                .product(name: "CompositeOperations", package: "CompositeOperations"),
                .product(name: "Observability", package: "CompositeOperations"),
                .product(name: "Scheduling", package: "CompositeOperations"),
                .product(name: "SchedulingDefaultExecutor", package: "CompositeOperations"),
                .product(name: "Transactions", package: "CompositeOperations"),
                .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["NIO"])),
                .product(name: "NIOPosix", package: "swift-nio", condition: .when(traits: ["NIO"])),
            ],
            path: "Peers",
            swiftSettings: settings
        ),
        .systemLibrary(name: "GlibcExtras", path: "GlibcExtras"),
        .target(
            name: "MeasuredLoop", path: "MeasuredLoop", publicHeadersPath: "include", cSettings: warnings),
        .target(name: "PthreadPool", path: "PthreadPool", sources: ["src"], cSettings: warnings),
        .target(
            name: "TBBPeer",
            path: "TBBPeer",
            sources: ["src"],
            cxxSettings: hasTBB ? [.define("HAS_TBB")] : [],
            linkerSettings: hasTBB ? [.linkedLibrary("tbb")] : []
        ),
        .target(
            name: "AllocationCounter", dependencies: ["CJemalloc", "MeasuredLoop"], path: "AllocationCounter",
            publicHeadersPath: "include", cSettings: warnings
        ),

        .testTarget(
            name: "BenchmarkTests",
            dependencies: [
                "bench-runner", "BenchmarkComparison", "BenchmarkCore", "BenchmarkHarness", "BenchmarkReport",
            ],
            swiftSettings: settings
        ),
    ],
    swiftLanguageModes: [.v6],
    cLanguageStandard: .gnu17,
    cxxLanguageStandard: .gnucxx17
)
