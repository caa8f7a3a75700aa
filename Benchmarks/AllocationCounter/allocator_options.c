// allocator_options.c - keeps the memory that one round frees available to the next.
//
// By default jemalloc does not split a free extent that is more than 64 times as large as the request, and
// returns blocks of 8 MB to the kernel at once. Tasks that are freed in the order in which they were created
// leave one large extent. The next round then took fresh pages: 0.3 page faults per task, up to half of its
// time. This cost depends on the order of the frees, and hides the cost of the schedulers.
//
// Also by default, memory that has been free for 10 s is returned when the process next allocates. In these
// benchmarks that happened inside a sample, because the other processes took their turns in between.
// Returning a gigabyte took 20 ms of that sample, and all pages had to be faulted in again. So the process
// that had most recently filled its memory was the fastest.

extern const char *malloc_conf; // read by jemalloc at its first allocation; MALLOC_CONF overrides it
const char *malloc_conf = "lg_extent_max_active_fit:64,oversize_threshold:0,"
                          "dirty_decay_ms:-1,muzzy_decay_ms:-1";
