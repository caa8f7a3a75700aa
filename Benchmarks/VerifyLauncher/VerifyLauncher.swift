import Launching

/// `swift run verify`, in whatever configuration: hands over to the program that asks the laws.
@main
struct VerifyLauncher {
    static func main() {
        // <the package in Benchmarks>/VerifyLauncher
        let folder = Launching.parent(of: #filePath)
        Launching(name: "verify", product: "verify-runner", package: Launching.parent(of: folder))
            .launch(Array(CommandLine.arguments.dropFirst()))
    }
}
