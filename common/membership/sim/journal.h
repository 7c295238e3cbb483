// What a schedule has shown. Private to this folder.
#pragma once

#include "common/membership/sim/simulation.h"
#include "tests/support/journal.h"

namespace ringmaster::membership::sim {

using Journal = support::Journal<Coverage, Outcome>;

}  // namespace ringmaster::membership::sim
