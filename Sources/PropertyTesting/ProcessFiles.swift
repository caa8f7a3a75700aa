// The kernel's account of a process, as text: the files under /proc.

import Glibc

/// The names in a directory, without `.` and `..`; nil on an error, which is in `errno`.
///
/// - Parameter skipped: receives the file descriptor through which the directory is read.
package func names(in directory: String, reading skipped: (Int32) -> Void = { _ in }) -> [String]? {
    guard let stream = opendir(directory) else { return nil }
    defer { closedir(stream) }
    skipped(dirfd(stream))
    var names: [String] = []
    while let entry = readdir(stream) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
            $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != "." && name != ".." { names.append(name) }
    }
    return names
}

/// The first 4096 bytes of a file, without the final newline; nil when the file no longer exists, as with
/// files of ended threads.
package func contents(of path: String) -> String? {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    let text = withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 4096) { bytes -> String? in
        let length = read(file, bytes.baseAddress, bytes.count)
        return length < 0 ? nil : String(decoding: bytes[..<length], as: UTF8.self)
    }
    guard let text, text.last == "\n" else { return text }
    return String(text.dropLast())
}

/// The target of a symbolic link; nil when the link no longer exists.
func target(of path: String) -> String? {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 4096) { bytes in
        let length = bytes.withMemoryRebound(to: CChar.self) { readlink(path, $0.baseAddress!, $0.count) }
        return length < 0 ? nil : String(decoding: bytes[..<length], as: UTF8.self)
    }
}

/// Sets the name that the kernel shows, at most 15 bytes; `pthread_setname_np` is not imported into Swift.
package func nameThisThread(_ name: String) {
    let file = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
    guard file >= 0 else { return }
    _ = write(file, name, name.utf8.count)
    close(file)
}
