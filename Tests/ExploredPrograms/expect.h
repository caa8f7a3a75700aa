// expect.h - a condition that must hold, or the schedule fails.

#ifndef EXPECT_H
#define EXPECT_H

#define EXPECT(condition)                                                                                    \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            explorer_fail("%s does not hold", #condition);                                                   \
        }                                                                                                    \
    } while (0)

#endif
