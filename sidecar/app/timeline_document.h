// What GET /timeline answers (docs/contracts.md, section 5): the newest events of this pod's
// workers as a trace that Chrome and Perfetto open, with what somebody needs to lay the traces of
// several pods side by side.
//
// Pure: a function of what it is handed.
#pragma once

#include <deque>
#include <string>

#include "common/job/rebuild.h"
#include "sidecar/app/options.h"
#include "sidecar/app/worker_timelines.h"

namespace ringmaster::app {

struct TimelineInput {
  const SidecarOptions& options;
  const TimelineGathering& gathering;
  const std::deque<job::Rebuild>& rebuilds;
  bool coordinator = false;
  int64_t since_unix_ms = 0;  // of the rebuilds
};

std::string TimelineDocument(const TimelineInput& input);

}  // namespace ringmaster::app
