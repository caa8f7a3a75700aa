// main.swift - a program that kills itself: one process uses a journal; another kills it and inspects what is left.
//
//   JournalCrash campaign [--kills N] [--seed S]     kills N times; prints one line of totals
//   JournalCrash hold PATH                           opens a journal, writes an "h", and waits to be killed
//   JournalCrash work FOLDER PIPE SEED SESSION JOBS  the process that is killed

import CommandJournal
import Foundation

let arguments = CommandLine.arguments.dropFirst()
switch arguments.first {
case "work" where arguments.count == 6:
    let values = Array(arguments.dropFirst())
    guard let pipe = Int32(values[1]), let seed = UInt64(values[2]), let session = Int(values[3]),
        let jobs = Int(values[4])
    else { fail("these are no numbers: \(values)") }
    do { try await work(in: values[0], Events(pipe), seed: seed, session: session, jobs: jobs) } catch {
        fail("\(error)")
    }
case "hold" where arguments.count == 2:
    do {
        let journal = try await CommandJournal(path: arguments.last!, types: [Entry.self])
        print("h", terminator: "")
        fflush(nil)
        withExtendedLifetime(journal) { while true { pause() } }
    } catch { fail("\(error)") }
case "campaign":
    var (kills, seed) = (60, UInt64.random(in: 0...UInt64.max))
    var rest = arguments.dropFirst()
    while let option = rest.popFirst() {
        switch (option, rest.popFirst()) {
        case ("--kills", let value?) where Int(value) ?? 0 > 0: kills = Int(value)!
        case ("--seed", let value?) where UInt64(value) != nil: seed = UInt64(value)!
        default: fail("the options are --kills N and --seed S.")
        }
    }
    var campaign = Campaign(kills: kills, seed: seed)
    do { try campaign.run() } catch { fail("\(error) (seed \(seed))") }
default: fail("the first argument is 'campaign' or 'work'.")
}
