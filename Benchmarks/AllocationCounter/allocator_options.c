// allocator_options.c - what one round has freed is there for the next one.
//
// By default jemalloc splits no free extent that is more than 64 times as large as what is asked for, and
// gives blocks of 8 MB back to the kernel at once. Tasks that are freed in the order in which they were made
// leave one large extent: then the next round takes fresh pages, and 0.3 page faults for each task were up to
// half of its time. That depends on the order of frees, and hides what the schedulers do.
//
// And by default it gives back what has been free for 10 s, when the process next allocates: here, as the
// others had their turns meanwhile, in a sample, of which it took 20 ms for a gigabyte, and all pages were
// faulted in anew. So whoever had filled its memory last was the fastest.

extern const char *malloc_conf; // read by jemalloc at its first allocation; MALLOC_CONF overrides it
const char *malloc_conf = "lg_extent_max_active_fit:64,oversize_threshold:0,"
                          "dirty_decay_ms:-1,muzzy_decay_ms:-1";
