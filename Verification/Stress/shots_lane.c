// shots_lane.c - serial lanes: one operation at a time, and those of one producer in order.

#include "load.h"

enum { LANE_MOST = 96 }; // more than one turn of a drain

static void run_on_lane(void *context, void *extra, csched_disposition disposition)
{
    stress_seat *seat = context;
    stress_producer *producer = seat->producer;
    uint64_t place = (uint64_t)producer->rounds << 32 | (stress_number(extra) + 1);
    if (place <= seat->last) {
        stress_note(&producer->ledger.disordered);
    }
    seat->last = place;
    seat->lane->runs++;
    if (!csched_lane_is_current(seat->lane->lane)) {
        stress_note(&producer->ledger.wrong);
    }
    stress_end(producer, stress_number(extra), disposition);
}

static void submit(stress_seat *seat, uint32_t number)
{
    csched_operation operation = {.run = run_on_lane,
                                  .context = seat,
                                  .extra = stress_pack(number, 1),
                                  .counter = seat->producer->round};
    stress_expect_ok(csched_lane_submit(seat->lane->lane, &operation), "csched_lane_submit");
}

void stress_shot_lane(stress_producer *producer)
{
    stress_seat *seat = &producer->seats[stress_below(&producer->random, STRESS_LANES)];
    uint32_t count = 2 + stress_below(&producer->random, LANE_MOST);
    uint32_t first = stress_expect(&producer->ledger, STRESS_LANE, count);
    atomic_fetch_add_explicit(&seat->lane->expected, count, memory_order_relaxed);
    uint32_t number = first;
    if (stress_errs(producer, STRESS_DISORDER)) {
        submit(seat, first + 1);
        submit(seat, first);
        number += 2;
    }
    for (; number < first + count; number++) {
        submit(seat, number);
    }
}
