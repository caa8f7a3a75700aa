// plain.c - races of plain accesses: if two touch the same byte, and one of them writes, one must happen
// before the other.
//
//   R1  A plain access is not a step, and has no time of its own: it lies after the thread's last step and
//       before its next one. Earlier releases of the thread do not publish it; its next release does.
//   R2  For each byte the last write is kept, and each thread's last read. Each earlier write happens before
//       the kept one, or there was a race; so a thread that knows of the last write knows of all.
//
// Source: Flanagan, Freund: FastTrack: Efficient and Precise Dynamic Race Detection (2009).

#include "plain.h"

#include <stdint.h>
#include <string.h>

#include "engine.h"

enum { GRANULE = 8, RECORDS = 1 << 14 };
enum { NONE = -1, MANY = -2 };

// The accesses to eight bytes.
typedef struct {
    uintptr_t granule;
    uint32_t execution;
    int8_t sole; // the only thread that has used them; NONE, or MANY
    uint8_t written_by[GRANULE];
    uint32_t written_at[GRANULE]; // 0: never
    uint32_t read_at[EXPLORER_THREADS][GRANULE];
} record;

static record records[RECORDS];
static uint32_t execution = 1; // never that of an unused record
static uint32_t used;

void explorer_plain_begin(void)
{
    execution++;
    used = 0;
}

// The record of eight bytes, or the free one where it would be; its `execution` distinguishes them.
static record *find(uintptr_t granule)
{
    size_t index = granule * UINT64_C(0x9E3779B97F4A7C15) >> 50;
    while (records[index].execution == execution && records[index].granule != granule) {
        index = (index + 1) % RECORDS;
    }
    return &records[index];
}

static record *record_of(uintptr_t granule)
{
    record *found = find(granule);
    if (found->execution != execution) {
        if (++used == RECORDS) {
            explorer_fail("the program uses more plain memory than the explorer watches: %d bytes",
                          RECORDS * GRANULE);
        }
        memset(found, 0, sizeof *found);
        found->execution = execution;
        found->granule = granule;
        found->sole = NONE;
    }
    return found;
}

static bool writes_unknown(const record *seen, int byte, const vector_clock *known)
{
    return known->at[seen->written_by[byte]] < seen->written_at[byte];
}

static const char *race_of(const record *seen, int byte, int thread, const vector_clock *known, bool writes)
{
    if (seen->written_by[byte] != thread && writes_unknown(seen, byte, known)) {
        return writes ? "a data race (R4): two plain writes"
                      : "a data race (R4): a plain read of what is being written";
    }
    for (int other = 0; writes && other < EXPLORER_THREADS; other++) {
        if (other != thread && known->at[other] < seen->read_at[other][byte]) {
            return "a data race (R4): a plain write to what is being read";
        }
    }
    return NULL;
}

static void note(record *seen, int byte, int thread, uint32_t time, bool writes)
{
    if (writes) {
        seen->written_by[byte] = (uint8_t)thread;
        seen->written_at[byte] = time;
    } else {
        seen->read_at[thread][byte] = time;
    }
}

const char *explorer_plain_access(int thread, const vector_clock *known, const void *object, size_t size,
                                  bool writes)
{
    uint32_t time = plain_time(thread, known);
    uintptr_t address = (uintptr_t)object;
    record *seen = NULL;
    for (uintptr_t end = address + size; address < end; address++) {
        int byte = (int)(address % GRANULE);
        if (seen == NULL || byte == 0) {
            seen = record_of(address / GRANULE);
            seen->sole = seen->sole == NONE || seen->sole == thread ? (int8_t)thread : MANY;
        }
        const char *wrong = seen->sole == MANY ? race_of(seen, byte, thread, known, writes) : NULL;
        if (wrong != NULL) {
            return wrong;
        }
        note(seen, byte, thread, time, writes);
    }
    return NULL;
}

const char *explorer_plain_is_known(int thread, const vector_clock *known, const void *object, size_t size)
{
    const record *seen = find((uintptr_t)object / GRANULE);
    for (size_t offset = 0; seen->execution == execution && offset < size; offset++) {
        int byte = (int)(((uintptr_t)object + offset) % GRANULE);
        if (seen->written_by[byte] != thread && writes_unknown(seen, byte, known)) {
            return "a data race (R4): the word was written plainly, and this thread does not know of it";
        }
    }
    return NULL;
}
