// swift-tools-version: 6.2

// What can be done with the operations of this repository, as programs that print what happened.

import PackageDescription

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

let operations = Target.Dependency.product(name: "CompositeOperations", package: "CompositeOperations")
let foundation = Target.Dependency.product(
    name: "CompositeOperationsFoundation", package: "CompositeOperations")

let package = Package(
    name: "operations",
    dependencies: [.package(name: "CompositeOperations", path: "../..")],
    targets: [
        .executableTarget(name: "flows", dependencies: [operations], swiftSettings: settings),
        .executableTarget(name: "download", dependencies: [operations], swiftSettings: settings),
        .executableTarget(name: "sync", dependencies: [operations], swiftSettings: settings),
        .executableTarget(name: "run-loop", dependencies: [operations, foundation], swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)
