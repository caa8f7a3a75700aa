// registry_model.h - access to a registry's internals, for scenarios.

#ifndef REGISTRY_MODEL_H
#define REGISTRY_MODEL_H

#include "registry.h"

/// Claims the places of the first chunk, except the last `left`.
void registry_model_fill(csched_registry *registry, uint32_t left);
/// How many places of the first chunk are claimed.
int registry_model_places_taken(const csched_registry *registry);
/// Returns the submitter in the first place.
csched_submitter *registry_model_first(const csched_registry *registry);

#endif
