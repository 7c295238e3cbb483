// Operations of a worker that is in no view.
//
// A worker that was dropped by a wrong suspicion can't take part any more, and failing its calls
// would end a healthy process. So its operations complete here alone until its step ends: the
// values are of no use to anybody, because it gets the job's state before it is let in again.
//
// Thread rule: pure, but for the operation.
#pragma once

#include "collectives/engine/operation.h"

namespace ringmaster::engine {

// Completes anything but a step end as if this rank were the only one.
void CompleteAlone(Operation* operation);

}  // namespace ringmaster::engine
