import CExplorer
import ExploredPrograms
import PropertyTesting
import Testing
import ThreadExploration

/// The issue that an exploration records; nil if the program holds.
private func failure(of program: explorer_program, replay: String? = nil) -> String? {
    let messages = Locked([String]())
    withKnownIssue(isIntermittent: true) {
        exploreThreads(program, replay: replay)
    } matching: { issue in
        messages.withLock { $0.append(issue.comments.map(\.rawValue).joined()) }
        return true
    }
    return messages.withLock { $0.first }
}

@Suite struct ExploreThreadsTests {
    @Test(arguments: [
        message_with_release, message_by_fences, counter_under_a_mutex, counter_under_trylock,
        handed_over_by_a_condition, operations_of_c11, operations_of_cpp, spinlock_in_cpp, results_of_threads,
        a_loop_that_spins, condition_in_cpp, exceptions_in_cpp, threads_in_cpp, global_in_cpp,
    ])
    func `a correct program holds under all schedules`(program: explorer_program) {
        let schedules = exploreThreads(program, preemptions: 2, staleLoads: 2)
        #expect(schedules.areAll)
        #expect(schedules.count >= 1)
    }

    @Test(arguments: [
        (message_relaxed, "atomic_load_explicit(&data, memory_order_relaxed) == 42 does not hold"),
        (counter_without_a_mutex, "atomic_load(&count) == 2 does not hold"),
        (two_mutexes_in_two_orders, "a lost wake-up or a deadlock (S3): main waits for ever"),
        (a_condition_that_is_not_looked_at_again, "atomic_load(&turns) == 1 does not hold"),
        (freed_while_read, "memory is freed by thread 2 while another thread may still use it (R3)"),
        (left_over_memory, "1 block was not freed (R1)"),
        (unjoined_in_cpp, "a thread is not joined"),
        (a_loop_for_nothing, "a livelock (S2)"),
        (unlocked_by_another, "a mutex is unlocked that another thread has (R3)"),
        (unlocked_free, "a mutex is unlocked that nobody has (R3)"),
        (locked_twice, "a mutex is locked by the thread that has it (S3)"),
        (locked_uninitialised, "a mutex that was not initialised (R3)"),
        (unlocked_after_free, "an access to freed memory (R3)"),
        (joined_twice, "a thread is joined that is none, or has been joined (R3)"),
        (the_wrong_waiter, "a lost wake-up or a deadlock (S3)"),
        (nodes_that_come_back, "atomic_load(&popped[node]) == 1 does not hold"),
        (bytes_in_bulk, "a data race (R4)"),
        (bulk_beyond_the_end, "a plain access to memory that was freed, or is none (R3)"),
        (freed_inside, "freed twice, or never allocated (R3)"),
        (deleted_while_used_in_cpp, "an access to freed memory (R3)"),
    ])
    func `a wrong program is reported with its schedule`(program: explorer_program, sentence: String)
        throws
    {
        let told = try #require(failure(of: program))
        #expect(told.contains(sentence), "\(told)")
        #expect(told.contains("\n=> \(sentence)"), "the steps do not end so: \(told)")
        let schedule = try #require(told.firstMatch(of: #/replay: "([^"]+)"/#)).1
        let again = try #require(failure(of: program, replay: String(schedule)))
        #expect(again.contains(sentence))
    }

    @Test(arguments: [
        plain_neighbours, plain_two_reads, plain_under_a_mutex, plain_under_trylock, plain_handed_on,
        plain_before_a_thread,
        plain_ignored,
    ])
    func `plain accesses that are ordered or disjoint are no race`(program: explorer_program) {
        #expect(exploreThreads(program, preemptions: 3, staleLoads: 2).areAll)
    }

    @Test(arguments: [
        (plain_write_and_read, "a data race (R4): a plain read of what is being written, by thread"),
        (plain_read_and_write, "a data race (R4): a plain write to what is being read, by thread"),
        (plain_two_writes, "a data race (R4): two plain writes, by thread"),
        (plain_overlap, "a data race (R4): a plain read of what is being written, by thread"),
        (plain_two_granules, "a data race (R4): a plain read of what is being written, by thread"),
        (
            plain_of_atomic,
            "a data race (R4): a plain access to an atomic object that another thread stores to"
        ),
        (plain_after_a_release, "a data race (R4): a plain read of what is being written, by thread"),
        (plain_beyond_the_end, "a plain access to memory that was freed, or is none (R3), by main"),
        (plain_after_free, "a plain access to memory that was freed, or is none (R3), by main"),
        (plain_freed_unknown, "memory is freed by thread 2 while another thread may still use it (R3)"),
        (plain_then_atomic, "a data race (R4): the word was written plainly"),
    ])
    func `plain accesses that race or are late are shown`(program: explorer_program, sentence: String) throws
    {
        let told = try #require(failure(of: program))
        #expect(told.contains(sentence), "\(told)")
    }

    @Test func `the steps of a schedule are in their threads' columns`() throws {
        let told = try #require(failure(of: message_relaxed))
        #expect(told.contains(#/\n +\d+ {4}thread 1 +store &data +0x2a +c11\.c:\d+\n/#), "\(told)")
        #expect(told.contains(#/\n +\d+ {6}thread 2 +load &data +0, 1 store old +c11\.c:\d+\n/#), "\(told)")
    }

    @Test func `a schedule needing one departure is shown with one`() throws {
        #expect(try #require(failure(of: counter_without_a_mutex)).contains("schedule with 1 departure:"))
        // The search first finds a schedule with two departures.
        #expect(try #require(failure(of: nodes_that_come_back)).contains("schedule with 1 departure:"))
    }

    @Test func `a cut or random run is not called all`() {
        let cut = exploreThreads(counter_under_a_mutex, limit: 2)
        #expect(cut.count == 2 && !cut.areAll)
        #expect("\(cut)" == "2 schedules")
        let all = exploreThreads(message_with_release, preemptions: 0, staleLoads: 0, random: 50)
        #expect(all.count == 51 && all.areAll)
        #expect("\(all)" == "all 51 schedules")
        #expect("\(exploreThreads(operations_of_c11))" == "all 1 schedule")
    }

    @Test func `all waiters are named, with places`() throws {
        let told = try #require(failure(of: two_mutexes_in_two_orders))
        #expect(
            told.contains(
                #/main waits for ever, at c11.c:\d+; thread 1 waits for ever, at c11.c:\d+; thread 2 waits/#),
            "\(told)")
        #expect(told.contains(#/lock &other_mutex +waits for thread 2/#), "\(told)")
    }

    @Test func `a thread is stopped forever where the program claims not to need it`() throws {
        var program = counter_under_a_mutex
        program.check_frozen = { _ in }
        #expect(
            try #require(failure(of: program)).contains("not lock-free (S2), a stopped thread is waited for"))
        program = message_with_release
        program.check_frozen = { _ in }
        #expect(try #require(failure(of: program)).contains("not lock-free (S2)"), "main joins")
        let told = try #require(failure(of: message_with_release, replay: "f1@2"))
        #expect(told.contains("message_with_release has no check_frozen"))
    }

    @Test func `a loop that changes state between its reads is not taken for a spin`() {
        #expect(exploreThreads(a_loop_that_works, preemptions: 0, staleLoads: 0).areAll)
    }

    @Test func `exceptions of the caller are its own after an exploration`() async {
        await #expect(processExitsWith: .success) { precondition(explored_inside_a_catch() == 7) }
    }

    @Test func `a bad schedule is named`() throws {
        let told = try #require(failure(of: message_with_release, replay: "t1"))
        #expect(told.contains("'t1' is not a schedule"))
    }

    @Test func `explorations of several threads wait for each other`() async {
        await withTaskGroup(of: Int.self) { group in
            for _ in 1...8 { group.addTask { exploreThreads(counter_under_a_mutex).count } }
            let counts = await group.reduce(into: Set<Int>()) { $0.insert($1) }
            #expect(counts.count == 1)
        }
    }

    @Test func `invalid bounds trap with a sentence`() async {
        await #expect(processExitsWith: .failure) { exploreThreads(message_with_release, preemptions: -1) }
        await #expect(processExitsWith: .failure) { exploreThreads(message_with_release, limit: 0) }
    }
}
