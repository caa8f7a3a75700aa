// join.h - what a worker has to know about the operations of joins.

#ifndef CSCHEDULER_SRC_JOIN_H
#define CSCHEDULER_SRC_JOIN_H

#include "cscheduler/join.h"

/// The body of every second branch: called with CSCHED_RUN even after a shutdown (J2).
void csched_join_run_second(void *frame, void *unused, csched_disposition disposition);

#endif
