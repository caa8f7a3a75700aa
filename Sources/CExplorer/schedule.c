// schedule.c - schedules as text, to be kept, sent and run again.

#include <stdio.h>
#include <string.h>

#include "explorer.h"

int explorer_schedule_write(const explorer_schedule *schedule, char *text, size_t size)
{
    if (schedule->count == 0 && schedule->frozen == 0) {
        return snprintf(text, size, "-");
    }
    int length =
        schedule->frozen == 0 ? 0 : snprintf(text, size, "f%d@%u", schedule->frozen - 1, schedule->frozen_at);
    for (uint32_t index = 0; index < schedule->count; index++) {
        const explorer_deviation *each = &schedule->at[index];
        size_t used = (size_t)length < size ? (size_t)length : size;
        length += snprintf(text + used, size - used, "%s%c%u@%u", length > 0 ? "," : "", each->kind,
                           (unsigned)each->value, each->step);
    }
    return length;
}

bool explorer_schedule_read(explorer_schedule *schedule, const char *text)
{
    *schedule = (explorer_schedule){.count = 0};
    if (strcmp(text, "-") == 0) {
        return true;
    }
    for (;;) {
        char kind = 0;
        unsigned value = 0;
        unsigned step = 0;
        int length = 0;
        if (sscanf(text, "%c%u@%u%n", &kind, &value, &step, &length) != 3 || strchr("ftrsw", kind) == NULL ||
            value > UINT8_MAX || schedule->count == EXPLORER_DEVIATIONS_MOST ||
            (kind == 'f' && value >= EXPLORER_THREADS)) {
            return false;
        }
        if (kind == 'f') {
            schedule->frozen = (int)value + 1;
            schedule->frozen_at = step;
        } else {
            schedule->at[schedule->count++] =
                (explorer_deviation){.step = step, .kind = kind, .value = (uint8_t)value};
        }
        text += length;
        if (*text == '\0') {
            return true;
        }
        if (*text++ != ',') {
            return false;
        }
    }
}
