// main.c - the scenarios of the core, and the explorer's own tests.

#include <stdlib.h>
#include <string.h>

#include <litmus.h>
#include <scenarios.h>

enum { SCENARIOS_MOST = 512 };

static int litmus(void)
{
    int wrong = 0;
    explorer_options options = explorer_options_default();
    options.bound = options.stale_bound = 9; // deep enough for every schedule of these programs
    for (size_t index = 0; index < litmus_count; index++) {
        const litmus_test *test = litmus_test_at(index);
        explorer_result result = explorer_run(&test->program, &options);
        bool right = result.failed == test->reachable && (result.failed || result.complete);
        (void)printf("%-32s %-12s %-12s %s  %s\n", test->program.name,
                     test->allowed ? "allowed" : "forbidden", result.failed ? "reached" : "not reached",
                     right ? "as expected" : "WRONG", test->program.sentence);
        wrong += !right;
    }
    (void)printf("litmus: %zu of %zu as expected\n", litmus_count - (size_t)wrong, litmus_count);
    return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int count, char **arguments)
{
    if (count == 2 && strcmp(arguments[1], "litmus") == 0) {
        return litmus();
    }
    static explorer_program scenarios[SCENARIOS_MOST];
    size_t found = 0;
    for (; scenario_at(found) != NULL; found++) {
        if (found == SCENARIOS_MOST) {
            (void)fprintf(stderr, "explore: there are more than %d scenarios.\n", SCENARIOS_MOST);
            return EXIT_FAILURE;
        }
        scenarios[found] = *scenario_at(found);
    }
    return explorer_main(count, arguments, scenarios, found);
}
