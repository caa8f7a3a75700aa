// torn.h - read-modify-writes split into a load and a store. Only mutants include this file.

#ifndef TORN_H
#define TORN_H

#define csched_torn_change(object, order, after)                                                             \
    (__extension__({                                                                                         \
        __typeof__(*(object)) before = csched_load(object, order);                                           \
        csched_store(object, after, order);                                                                  \
        before;                                                                                              \
    }))
#define csched_torn_exchange(object, value, order) csched_torn_change(object, order, value)
#define csched_torn_fetch_add(object, value, order) csched_torn_change(object, order, before + (value))
#define csched_torn_fetch_sub(object, value, order) csched_torn_change(object, order, before - (value))
#define csched_torn_fetch_or(object, value, order) csched_torn_change(object, order, before | (value))
#define csched_torn_fetch_and(object, value, order) csched_torn_change(object, order, before &(value))
#define csched_torn_cas(object, expected, desired, success, failure)                                         \
    (__extension__({                                                                                         \
        __typeof__(*(object)) seen = csched_load(object, failure);                                           \
        bool equal = seen == *(expected);                                                                    \
        if (equal) {                                                                                         \
            (void)csched_load(object, success);                                                              \
            csched_store(object, desired, success);                                                          \
        } else {                                                                                             \
            *(expected) = seen;                                                                              \
        }                                                                                                    \
        equal;                                                                                               \
    }))
#define csched_torn_cas_weak(object, expected, desired, success, failure)                                    \
    csched_torn_cas(object, expected, desired, success, failure)

#endif
