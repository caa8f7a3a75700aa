#include <registry.c>

#include "registry_model.h"

void registry_model_fill(csched_registry *registry, uint32_t left)
{
    csched_init(&registry->first->occupied, UINT64_MAX >> left);
}

int registry_model_places_taken(const csched_registry *registry)
{
    return __builtin_popcountll(csched_load(&registry->first->occupied, relaxed));
}

csched_submitter *registry_model_first(const csched_registry *registry)
{
    return csched_load(&registry->first->place[0], relaxed);
}
