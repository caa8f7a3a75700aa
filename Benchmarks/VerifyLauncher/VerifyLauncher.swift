import Launching

/// `swift run verify`, in any configuration: runs the program that checks the laws.
@main
struct VerifyLauncher {
    static func main() {
        // <the package in Benchmarks>/VerifyLauncher
        let folder = Launching.parent(of: #filePath)
        Launching(name: "verify", product: "verify-runner", package: Launching.parent(of: folder))
            .launch(Array(CommandLine.arguments.dropFirst()))
    }
}
