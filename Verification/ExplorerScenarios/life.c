// life.c - shared code of the scenarios of a scheduler's life.

#include "life.h"

int quiet;
bool accepted[ITEMS_MOST];

void looks_around(int number, csched_disposition disposition)
{
    explorer_plain_read(csched_site("quiet"), &quiet);
    if (quiet != 0) {
        explorer_fail("operation %d started while suspended (S7)", number);
    }
    ran(number, disposition);
}

void stays_quiet(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    looks_around(number_of(context), disposition);
}

void be_quiet(void)
{
    explorer_plain_write(csched_site("quiet"), &quiet);
    quiet = 1;
    give_way();
    explorer_plain_write(csched_site("quiet"), &quiet);
    quiet = 0;
}

void suspends_and_resumes(void)
{
    give_way();
    csched_scheduler_suspend(scheduler);
    if (csched_scheduler_statistics(scheduler).running == 0) {
        be_quiet();
    }
    csched_scheduler_resume(scheduler);
}

void submits_many(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    looks_around(number_of(context), disposition);
    csched_operation many[4];
    for (int index = 0; index < 4; index++) {
        many[index] = operation_with(index + 1, stays_quiet);
    }
    csched_check(csched_submit_bulk(scheduler, many, 4) == CSCHED_OK, "a submission was not accepted");
}

void pass_time(void) { (void)csched_futex_wait(&gates[3].open, 0, 1); }

void passes_gate(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_pass(&gates[0]);
    ran(number_of(context), disposition);
}

void opens_gate(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    ran(number_of(context), disposition);
    gate_open(&gates[0]);
}

void tells_and_waits_for_gate_1(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_open(&gates[0]);
    gate_pass(&gates[1]);
    ran(number_of(context), disposition);
}

void submits_0_and_1(void)
{
    for (int number = 0; number < 2; number++) {
        csched_operation what = operation(number);
        accepted[number] = csched_submit(scheduler, &what) == CSCHED_OK;
    }
}

void shut_down(uint64_t timeout_ns)
{
    csched_check(csched_scheduler_shutdown(scheduler, timeout_ns) == CSCHED_OK, "shutdown");
    csched_operation late = operation(15);
    late.counter = NULL;
    csched_check(csched_submit(scheduler, &late) == CSCHED_CLOSED,
                 "a submission after shutdown was accepted (S14)");
}

void expect_accepted(int count, bool cancelling)
{
    for (int number = 0; number < count; number++) {
        int settled = times_run(number) + times_cancelled(number);
        if (settled != accepted[number] || (!cancelling && times_cancelled(number) != 0)) {
            explorer_fail("operation %d was %s, run %d times and cancelled %d times (S13)", number,
                          accepted[number] ? "accepted" : "refused", times_run(number),
                          times_cancelled(number));
        }
    }
    if (csched_completion_outstanding(counter) != 0) {
        explorer_fail("%u operations are outstanding after the shutdown (S6)",
                      csched_completion_outstanding(counter));
    }
}

static void opens_when_stopped(void *unused, csched_event event, uint32_t worker)
{
    (void)unused, (void)worker;
    if (event == CSCHED_WORKER_STOPPED) {
        gate_open(&gates[0]);
    }
}

void watch_the_end_of_a_worker(void)
{
    csched_observer observer = {.notify = opens_when_stopped};
    csched_check(csched_scheduler_observe(scheduler, &observer) == CSCHED_OK, "observe");
}

void opens_gate_2(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    ran(number_of(context), disposition);
    gate_open(&gates[2]);
}

void shuts_down(void) { shut_down(CSCHED_FOREVER); }

void closes(void) { csched_scheduler_close(scheduler); }

void submits_operation_0(void) { submit(operation(0)); }
void submits_operation_1(void) { submit(operation(1)); }
