// json.h - reports as JSON, for scripts.

#ifndef EXPLORE_JSON_H
#define EXPLORE_JSON_H

#include <stdio.h>

#include "run.h"

/// An array of one object for each report. Times in seconds.
void explorer_write_json(FILE *file, const run_report *reports, size_t count);

#endif
