// allocator_options.c - memory that one round has freed is available to the next.
//
// By default jemalloc does not split a free extent that is more than 64 times as large as the request, and
// returns blocks of 8 MB to the kernel at once. Tasks that are freed in the order in which they were created
// leave one large extent; the next round then takes fresh pages, and 0.3 page faults per task were up to half
// of its time. That depends on the order of frees, and hides what the schedulers do.
//
// Also by default, memory that has been free for 10 s is returned when the process next allocates. Here this
// happened in a sample, since the other processes had their turns meanwhile. Returning a gigabyte took 20 ms
// of that sample, and all pages were faulted in again. So the process that had filled its memory last was the
// fastest.

extern const char *malloc_conf; // read by jemalloc at its first allocation; MALLOC_CONF overrides it
const char *malloc_conf = "lg_extent_max_active_fit:64,oversize_threshold:0,"
                          "dirty_decay_ms:-1,muzzy_decay_ms:-1";
