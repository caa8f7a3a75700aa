internal import CompositeOperationsBasics
internal import Glibc

/// The names of the program's functions by address, from its symbol table.
///
/// Source: System V ABI, Object Files, chapter 4.
struct Symbols {
    private static let lock = InspectionLock()
    /// Under `lock`; read at the first lookup.
    private nonisolated(unsafe) static var ofProgram: Symbols?

    /// The demangled name of the function that contains an address; nil: no function of the program contains it. The first
    /// call reads the symbol table.
    static func name(of address: UInt64) -> String? {
        lock.locked {
            if ofProgram == nil { ofProgram = Symbols() }
            return ofProgram?.name(of: address)
        }
    }

    private var base: UInt64 = 0
    private var functions: [(address: UInt64, size: UInt64, name: Int)] = []
    private var names: [UInt8] = []
    private var known: [UInt64: String] = [:]

    /// Reads the program's symbol table; a stripped program has none.
    init() {
        guard let image = Image(path: "/proc/self/exe") else { return }
        defer { image.close() }
        base = image.loadAddress
        for section in image.sections where section.type == 2 {  // SHT_SYMTAB
            guard section.link < image.sections.count else { continue }
            let strings = image.sections[section.link]
            names = image.bytes(strings.offset, strings.size)
            for entry in stride(from: section.offset, to: section.offset + section.size, by: 24) {
                guard let symbol = image.symbol(at: entry), symbol.isFunction else { continue }
                functions.append((symbol.value, symbol.size, symbol.name))
            }
        }
        functions.sort { $0.address < $1.address }
    }

    private mutating func name(of address: UInt64) -> String? {
        if let name = known[address] { return name }
        guard let found = find(address) else { return nil }
        let name = Self.demangled(found)
        known[address] = name  // bounded by the number of functions
        return name
    }

    private func find(_ address: UInt64) -> String? {
        guard address >= base else { return nil }
        let offset = address - base
        var (low, high) = (0, functions.count)
        while low < high {
            let middle = (low + high) / 2
            if functions[middle].address <= offset { low = middle + 1 } else { high = middle }
        }
        guard low > 0, offset < functions[low - 1].address + functions[low - 1].size else { return nil }
        let begin = functions[low - 1].name
        guard let end = names[begin...].firstIndex(of: 0) else { return nil }
        return String(decoding: names[begin..<end], as: UTF8.self)
    }

    /// Prefixes of the names of code that calls a function or is derived from it.
    private static let disguises = [
        "partial apply forwarder for ", "function signature specialization <", "generic specialization <",
        "merged ",
    ]

    private static func demangled(_ name: String) -> String {
        guard let text = demangle(name, name.utf8.count, nil, nil, 0) else { return name }
        defer { free(text) }
        var words = Substring(String(cString: text))
        while let kind = disguises.first(where: { words.hasPrefix($0) }) {
            words = words.dropFirst(kind.count)
            if kind.hasSuffix("<"), let end = words.firstRange(of: "> of ") {
                words = words[end.upperBound...]
            }
        }
        return String(words)
    }
}

@_silgen_name("swift_demangle")
private func demangle(
    _ name: UnsafePointer<CChar>?, _ length: Int, _ buffer: UnsafeMutablePointer<CChar>?,
    _ size: UnsafeMutablePointer<Int>?, _ flags: UInt32
) -> UnsafeMutablePointer<CChar>?

/// A mapped 64-bit ELF file.
private struct Image {
    struct Section {
        let type: UInt32
        let offset: Int
        let size: Int
        let link: Int
    }

    struct Symbol {
        let name: Int
        let value: UInt64
        let size: UInt64
        let isFunction: Bool
    }

    private let memory: UnsafeRawBufferPointer
    let sections: [Section]

    init?(path: String) {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { Glibc.close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_size >= 64,
            let start = mmap(nil, Int(status.st_size), PROT_READ, MAP_PRIVATE, file, 0), start != MAP_FAILED
        else { return nil }
        memory = UnsafeRawBufferPointer(start: start, count: Int(status.st_size))
        let memory = memory
        func word<Word: FixedWidthInteger>(_ offset: Int, _ type: Word.Type) -> Word? {
            offset >= 0 && offset + MemoryLayout<Word>.size <= memory.count
                ? memory.loadUnaligned(fromByteOffset: offset, as: type) : nil
        }
        let isELF64 = memory.prefix(5).elementsEqual([0x7F, 0x45, 0x4C, 0x46, 2])
        let table = Int(clamping: word(40, UInt64.self) ?? 0)
        let size = Int(word(58, UInt16.self) ?? 0)
        let count = isELF64 && size >= 64 ? Int(word(60, UInt16.self) ?? 0) : 0
        sections = (0..<count).compactMap { index in
            let entry = table + index * size
            guard let type = word(entry + 4, UInt32.self), let offset = word(entry + 24, UInt64.self),
                let length = word(entry + 32, UInt64.self), let link = word(entry + 40, UInt32.self)
            else { return nil }
            return Section(
                type: type, offset: Int(clamping: offset), size: Int(clamping: length), link: Int(link))
        }
    }

    func close() { munmap(UnsafeMutableRawPointer(mutating: memory.baseAddress!), memory.count) }

    /// The offset of the addresses of the symbols: where the program's headers are in memory, as reported by the kernel,
    /// minus where they are in the file.
    var loadAddress: UInt64 {
        let isAnywhere = memory.loadUnaligned(fromByteOffset: 16, as: UInt16.self) == 3  // ET_DYN
        guard isAnywhere, let file = fopen("/proc/self/auxv", "re") else { return 0 }
        defer { fclose(file) }
        var entry: (kind: UInt64, value: UInt64) = (0, 0)
        while fread(&entry, 16, 1, file) == 1 {
            if entry.kind == 3 {  // AT_PHDR
                return entry.value &- memory.loadUnaligned(fromByteOffset: 32, as: UInt64.self)
            }
        }
        return 0
    }

    /// The bytes at an offset, or as many of them as there are.
    func bytes(_ offset: Int, _ size: Int) -> [UInt8] {
        offset < memory.count ? Array(memory[offset..<min(memory.count, offset + size)]) : []
    }

    func symbol(at offset: Int) -> Symbol? {
        guard offset + 24 <= memory.count else { return nil }
        let kind = memory[offset + 4] & 0xF
        return Symbol(
            name: Int(memory.loadUnaligned(fromByteOffset: offset, as: UInt32.self)),
            value: memory.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self),
            size: memory.loadUnaligned(fromByteOffset: offset + 16, as: UInt64.self), isFunction: kind == 2)
    }
}
