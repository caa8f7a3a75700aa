// json.c - the few forms of JSON that a report needs.

#include "json.h"

static void write_string(FILE *file, const char *text)
{
    (void)fputc('"', file);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            (void)fputc('\\', file);
        }
        (void)fputc((unsigned char)*text < ' ' ? ' ' : *text, file);
    }
    (void)fputc('"', file);
}

static void write_search(FILE *file, const char *name, const search_report *search)
{
    if (!search->ran) {
        return;
    }
    const explorer_result *result = &search->result;
    (void)fprintf(file,
                  ",\n   \"%s\": {\"schedules\": %llu, \"steps\": %llu, \"longest\": %u, \"complete\": %s, "
                  "\"seconds\": %.3f",
                  name, (unsigned long long)result->executions, (unsigned long long)result->steps,
                  result->steps_longest, result->complete ? "true" : "false", search->seconds);
    if (search->signal != 0) {
        (void)fprintf(file, ", \"signal\": %d", search->signal);
    }
    if (result->failed) {
        char schedule[4096];
        (void)explorer_schedule_write(&result->schedule, schedule, sizeof schedule);
        (void)fprintf(file, ", \"violation\": ");
        write_string(file, result->message);
        (void)fprintf(file, ", \"schedule\": \"%s\", \"departures\": %u", schedule, search->departures);
    }
    (void)fputc('}', file);
}

void explorer_write_json(FILE *file, const run_report *reports, size_t count)
{
    (void)fprintf(file, "[");
    for (size_t index = 0; index < count; index++) {
        const run_report *report = &reports[index];
        (void)fprintf(file, "%s\n  {\"scenario\": \"%s\", \"sentence\": ", index > 0 ? "," : "",
                      report->program->name);
        write_string(file, report->program->sentence != NULL ? report->program->sentence : "");
        (void)fprintf(file, ", \"properties\": \"%s\", \"holds\": %s",
                      report->program->properties != NULL ? report->program->properties : "",
                      explorer_report_failed(report) ? "false" : "true");
        write_search(file, "exhaustive", &report->exhaustive);
        write_search(file, "random", &report->random);
        write_search(file, "frozen", &report->frozen);
        (void)fprintf(file, "}");
    }
    (void)fprintf(file, "\n]\n");
}
