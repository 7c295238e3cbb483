// What has to be written about a job's Workload now: who makes, changes and ends it is the
// operator; Kueue decides in between. One write at a time; the next look finds the next.
//
// Source: docs/kueue.md, "Where this comes from". Pure.
#pragma once

#include <string>

#include "operator/api/time.h"
#include "operator/kueue/workload.h"

namespace ringmaster::kueue {

// What of the job matters to its Workload.
struct JobNeeds {
  bool wants_quota = true;  // not suspended, and it names a queue
  // Not the quota that it has: it was suspended since.
  bool gives_up_admission = false;
  bool pods_left = false;  // pods that have not ended, or that are yet to be judged
  int pods_alive = 0;      // that have not ended
  int pods_running = 0;    // workers' containers run
  int wanted = 0;          // pods that it would have of those that it may have
  int least = 0;           // with fewer it doesn't train
  bool succeeded = false;
  bool failed = false;
  std::string end;  // of a job that has ended, for people
  api::Time now;
};

struct Write {
  enum class Kind { kNothing, kCreate, kChange, kChangeStatus, kDelete };
  Kind kind = Kind::kNothing;
  Json body;        // kCreate: the object; kChange, kChangeStatus: a merge patch
  std::string why;  // for the log
};

// `live` is null where there is no Workload; `wanted` is BuildWorkload's.
Write NextWrite(const JobNeeds& needs, const Json* live, const Json& wanted);

}  // namespace ringmaster::kueue
