// What a notice to a sidecar is about. A later notice on the same topic replaces an earlier one, so
// of two that wait to be sent the newer one is enough.
#pragma once

#include <string>

#include "operator/planner/decision.h"

namespace ringmaster::planner {

// Each pod that is drained alone is a topic of its own; of the other notices each kind is one, and
// those of pods that leave together.
std::string TopicOf(const Notice& notice);

}  // namespace ringmaster::planner
