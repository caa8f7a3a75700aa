// registry_model.h - a registry's inside, for scenarios.

#ifndef REGISTRY_MODEL_H
#define REGISTRY_MODEL_H

#include "registry.h"

/// Claims every place of the first chunk.
void registry_model_fill(csched_registry *registry);
/// How many places of the first chunk are claimed.
int registry_model_places_taken(const csched_registry *registry);
/// What is in the first place.
csched_submitter *registry_model_first(const csched_registry *registry);

#endif
