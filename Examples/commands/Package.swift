// swift-tools-version: 6.3

// Examples of the commands of this repository: programs that print what happened.

import PackageDescription

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

let commands = Target.Dependency.product(name: "Commands", package: "CompositeOperations")

let package = Package(
    name: "commands",
    products: [
        .executable(name: "pull-to-refresh", targets: ["PullToRefresh"]),
        .executable(name: "vehicle-demo", targets: ["ATCommandPattern"]),
    ],
    dependencies: [.package(name: "CompositeOperations", path: "../..", traits: [])],
    targets: [
        .executableTarget(
            name: "PullToRefresh", dependencies: [commands], path: "Sources/pull-to-refresh",
            exclude: ["expected.txt"], swiftSettings: settings),
        // The name of the module is printed with the error.
        .executableTarget(
            name: "ATCommandPattern", dependencies: [commands], path: "Sources/vehicle-demo",
            exclude: ["expected.txt", "expected--fail.txt"], swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)
