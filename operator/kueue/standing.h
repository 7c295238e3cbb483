// What a job's Workload means for the job: whether it may have pods, how many and which.
//
// Plain values and pure functions.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "operator/api/horovod_job.h"
#include "operator/kueue/pod_changes.h"
#include "operator/kueue/workload.h"

namespace ringmaster::kueue {

enum class Stage {
  kUnknown,   // the Workload can't be seen: pods stay as they are, and none is made
  kWaits,     // no pods
  kAdmitted,  // as many pods as were admitted
  kLeaves,    // the pods have to go; an end that all ranks have agreed on is let happen
};

// Reasons of condition Scheduled while a job has no admission.
inline constexpr char kWaitingForQueue[] = "WaitingForQueue";
inline constexpr char kEvictedByQueue[] = "EvictedByQueue";
inline constexpr char kQueueUnavailable[] = "QueueUnavailable";
inline constexpr char kAdmissionUnusable[] = "AdmissionUnusable";
inline constexpr char kAdmissionGivenBack[] = "AdmissionGivenBack";

struct Standing {
  std::string queue;
  Stage stage = Stage::kUnknown;
  std::string reason;                   // one of the above; of kAdmitted: empty
  std::string message;                  // for people, with Kueue's own words
  std::optional<api::Time> evicted_at;  // of kLeaves, where that is known
  int pods = 0;                         // of kAdmitted: at most so many
  // Of kAdmitted. Null: what the flavours want is not known, and no pod is made.
  std::shared_ptr<const PodChanges> changes;
};

// The job has been suspended, or has left its queue, and what it had then is to be given back, also
// where it wants pods again before those of before have gone: it may ask for something else by now.
bool GivesUpAdmission(const api::HorovodJob& job);
// `workload` is null where there is none (any more). Of kAdmitted, `changes` is left null.
Standing StandingOf(const api::HorovodJob& job, const WorkloadFacts* workload);
// The job names no queue, and has an admission by this Workload.
Standing LeavesQueue(const WorkloadFacts& workload);
// The Workload of an earlier job of this name has yet to go.
Standing WaitsForEarlier(const api::HorovodJob& job, const std::string& workload);
// Nobody can say. `why` is for people.
Standing UnknownStanding(const api::HorovodJob& job, const std::string& why);
// An admission that can't be put into pods.
Standing UnusableAdmission(const api::HorovodJob& job, const std::string& why);

}  // namespace ringmaster::kueue
