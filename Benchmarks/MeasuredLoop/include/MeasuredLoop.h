// MeasuredLoop.h - where the loop that a sample measures begins and ends, for tools that count something
// other than time.
//
// Two functions that a tool finds by name (callgrind's --zero-before and --dump-before), and an observer
// within the process. They cost a call each, outside the measured time.

#ifndef MEASURED_LOOP_H
#define MEASURED_LOOP_H

typedef void (*measured_loop_observer)(void);

// To be called just before the clock starts, and just after it has stopped, by any thread; pairs do not
// overlap.
void measured_loop_began(void);
void measured_loop_ended(void);

// Makes each of the two notify an observer from now on. Must be called before the process has a second
// thread.
void measured_loop_observe(measured_loop_observer _Nonnull began, measured_loop_observer _Nonnull ended);

#endif
