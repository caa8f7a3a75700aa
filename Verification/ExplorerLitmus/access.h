// access.h - shared accesses of 32-bit words, with their text as the site.

#ifndef ACCESS_H
#define ACCESS_H

#include <explorer.h>

#define SITE(text)                                                                                           \
    (__extension__({                                                                                         \
        static const explorer_site here = {__FILE__, __LINE__, text};                                        \
        &here;                                                                                               \
    }))
#define LOAD(object, order)                                                                                  \
    (int)explorer_load(SITE("load " #object " " #order), &(object), 4, explorer_##order)
#define STORE(object, value, order)                                                                          \
    explorer_store(SITE("store " #object " " #order), &(object), 4, (value), explorer_##order)
#define EXCHANGE(object, value, order)                                                                       \
    (void)explorer_modify(SITE("exchange " #object " " #order), &(object), 4, EXPLORER_EXCHANGE, (value),    \
                          explorer_##order)
#define FENCE_OF_ALL() explorer_fence_all(SITE("fence of all"))
#define FENCE(order) explorer_fence(SITE("fence " #order), explorer_##order)

#endif
