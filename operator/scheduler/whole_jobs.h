// Which less important jobs give all that they have, where what they can do without is not enough
// for a job that waits. No more than are needed: none where pods that others can do without
// suffice; of the lowest priorities; at the highest of these the smallest job that will do; and
// each job without which it would suffice, too, is let be.
//
// Pure: the capacity is as before afterwards.
#pragma once

#include <optional>

#include "operator/scheduler/preemption.h"

namespace ringmaster::scheduler {

// Pods that jobs can do without, and where these are not enough whole jobs beside them. A job that
// was asked for all earlier is asked again rather than another one.
std::optional<Preemption> Preempt(const PreemptionCase& what);

}  // namespace ringmaster::scheduler
