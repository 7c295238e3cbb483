// What has to be written about a job's Workload now: the operator creates, changes and ends the
// Workload, and Kueue decides in between. Each call returns one write; the next reconcile finds the
// next one.
//
// Source: docs/kueue.md, "Where this comes from". Pure.
#pragma once

#include <string>

#include "operator/api/time.h"
#include "operator/kueue/workload.h"

namespace ringmaster::kueue {

// The facts about a job that its Workload depends on.
struct JobNeeds {
  bool wants_quota = true;  // the job is not suspended, and names a queue
  // The job was suspended since it got its quota, so it gives that quota back.
  bool gives_up_admission = false;
  bool pods_left = false;  // some pods have not ended, or their end has not been evaluated yet
  int pods_alive = 0;      // pods that have not ended
  int pods_running = 0;    // pods whose worker containers run
  int wanted = 0;          // pods that the job wants, of those that it may have
  int least = 0;           // with fewer pods it doesn't train
  bool succeeded = false;
  bool failed = false;
  std::string end;  // why the job has ended, for people
  api::Time now;
};

struct Write {
  enum class Kind { kNothing, kCreate, kChange, kChangeStatus, kDelete };
  Kind kind = Kind::kNothing;
  Json body;        // kCreate: the object; kChange, kChangeStatus: a merge patch
  std::string why;  // for the log
};

// `live` is null if there is no Workload; `wanted` is the result of BuildWorkload.
Write NextWrite(const JobNeeds& needs, const Json* live, const Json& wanted);

}  // namespace ringmaster::kueue
