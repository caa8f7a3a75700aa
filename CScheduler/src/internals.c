// internals.c - the deque and the inbox in isolation, for tests.

#include "cscheduler/internals/queues.h"

#include "deque.h"
#include "inbox.h"
#include "reclaim.h"

struct csched_test_deque {
    csched_deque deque;
    csched_reclaim *domain;
};

struct csched_test_inbox {
    csched_inbox inbox;
    csched_reclaim *domain;
};

csched_test_deque *csched_test_deque_create(void)
{
    csched_test_deque *test = csched_allocate(sizeof *test, CSCHED_LINE);
    csched_check(test != NULL, "out of memory");
    test->domain = csched_reclaim_create();
    csched_check(test->domain != NULL && csched_deque_init(&test->deque, test->domain, CSCHED_DEQUE_CAPACITY),
                 "out of memory");
    return test;
}

void csched_test_deque_destroy(csched_test_deque *test)
{
    csched_reclaim_destroy(test->domain);
    csched_deque_destroy(&test->deque);
    csched_free(test);
}

bool csched_test_deque_push(csched_test_deque *test, const csched_operation *operations, size_t count)
{
    return csched_deque_push(&test->deque, operations, count);
}

bool csched_test_deque_pop(csched_test_deque *test, csched_operation *operation)
{
    return csched_deque_pop(&test->deque, operation);
}

size_t csched_test_deque_steal(csched_test_deque *test, csched_operation *operations, size_t room)
{
    csched_reclaim_enter();
    size_t count = csched_deque_steal(&test->deque, operations, room);
    csched_reclaim_exit();
    return count;
}

uint64_t csched_test_deque_unreclaimed(const csched_test_deque *test)
{
    return csched_reclaim_retired(test->domain) - csched_reclaim_freed(test->domain);
}

void csched_test_reclaim_flush(void) { csched_reclaim_flush(); }

csched_test_inbox *csched_test_inbox_create(void)
{
    csched_test_inbox *test = csched_allocate(sizeof *test, CSCHED_LINE);
    csched_check(test != NULL, "out of memory");
    test->domain = csched_reclaim_create();
    csched_check(test->domain != NULL && csched_inbox_init(&test->inbox, test->domain), "out of memory");
    return test;
}

void csched_test_inbox_destroy(csched_test_inbox *test)
{
    csched_reclaim_destroy(test->domain);
    csched_inbox_destroy(&test->inbox);
    csched_free(test);
}

bool csched_test_inbox_append(csched_test_inbox *test, const csched_operation *operations, size_t count)
{
    return csched_inbox_append(&test->inbox, operations, count) == CSCHED_APPENDED;
}

void csched_test_inbox_close(csched_test_inbox *test) { csched_inbox_close(&test->inbox); }

size_t csched_test_inbox_take(csched_test_inbox *test, csched_operation *operations, size_t room)
{
    csched_reclaim_enter();
    size_t count = csched_inbox_take(&test->inbox, operations, room);
    csched_reclaim_exit();
    return count;
}

bool csched_test_inbox_is_empty(csched_test_inbox *test)
{
    csched_reclaim_enter();
    bool empty = csched_inbox_is_empty(&test->inbox);
    csched_reclaim_exit();
    return empty;
}

void csched_reader_begin(void) { csched_reclaim_join(); }

void csched_reader_end(void) { csched_reclaim_leave(); }

void csched_read_section_begin(void) { csched_reclaim_enter(); }

void csched_read_section_end(void) { csched_reclaim_exit(); }
