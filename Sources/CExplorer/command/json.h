// json.h - reports as JSON, for scripts.

#ifndef EXPLORE_JSON_H
#define EXPLORE_JSON_H

#include <stdio.h>

#include "run.h"

/// An array of one object for each report. Times in seconds.
void json_write(FILE *file, const run_report *reports, size_t count);

#endif
