// What a schedule has shown. Private to this folder.
#pragma once

#include "tests/sim/simulation.h"
#include "tests/support/journal.h"

namespace ringmaster::app::sim {

using Journal = support::Journal<Coverage, Outcome>;

}  // namespace ringmaster::app::sim
