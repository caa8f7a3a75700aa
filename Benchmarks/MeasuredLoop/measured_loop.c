#include "MeasuredLoop.h"

static measured_loop_observer on_begin, on_end;

void measured_loop_began(void)
{
    if (on_begin) {
        on_begin();
    }
}

void measured_loop_ended(void)
{
    if (on_end) {
        on_end();
    }
}

void measured_loop_observe(measured_loop_observer began, measured_loop_observer ended)
{
    on_begin = began;
    on_end = ended;
}
