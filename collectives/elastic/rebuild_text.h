// The last rebuild as rm_last_rebuild() gives it to the script.
//
// Thread rule: a plain function.
#pragma once

#include <string>

#include "collectives/engine/rebuild_timer.h"

namespace ringmaster::elastic {

// JSON with the epoch, the reason and the seconds of each phase; empty if there was no rebuild yet.
std::string RebuildText(const engine::RebuildTimes& times);

}  // namespace ringmaster::elastic
