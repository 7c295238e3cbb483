// Decides which less important jobs give up all their pods, where the pods that jobs can do without
// are not enough for a waiting job. No more jobs than needed are chosen: none if the dispensable
// pods are enough; jobs of the lowest priorities otherwise; at the highest of these priorities the
// smallest job that is enough. In the end each job is spared without which the others are enough.
//
// A search of the nodes tells whether some jobs are enough. There is a bound on the searches: where
// very many jobs have to give, the last ones are spared only if the needed pods keep the places
// that were found for them.
//
// Pure.
#pragma once

#include <optional>

#include "operator/scheduler/preemption.h"

namespace ringmaster::scheduler {

inline constexpr int kMostSearches = 40;

// Takes pods that jobs can do without and, where these are not enough, also whole jobs. A job that
// was asked for all its pods earlier is asked again in preference to another one.
std::optional<Preemption> Preempt(const PreemptionCase& what);

}  // namespace ringmaster::scheduler
