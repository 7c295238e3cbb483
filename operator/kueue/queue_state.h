// What a job's Workload means for the job: whether it may have pods, how many, and which.
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
  kUnknown,   // the Workload can't be read: pods stay as they are, and none is created
  kWaits,     // no pods
  kAdmitted,  // as many pods as were admitted
  kLeaves,    // the pods have to go; workers that have agreed to end may still finish
};

// Reasons of condition Scheduled while a job has no admission.
inline constexpr char kWaitingForQueue[] = "WaitingForQueue";
inline constexpr char kEvictedByQueue[] = "EvictedByQueue";
inline constexpr char kQueueUnavailable[] = "QueueUnavailable";
inline constexpr char kAdmissionUnusable[] = "AdmissionUnusable";
inline constexpr char kAdmissionGivenBack[] = "AdmissionGivenBack";

struct QueueState {
  std::string queue;
  Stage stage = Stage::kUnknown;
  std::string reason;                   // one of the above; empty for kAdmitted
  std::string message;                  // for people, in Kueue's words
  std::optional<api::Time> evicted_at;  // for kLeaves, if it is known
  int pods = 0;                         // for kAdmitted: the largest number of pods
  // For kAdmitted. Null if the changes that the flavours ask for are unknown; then no pod is
  // created.
  std::shared_ptr<const PodChanges> changes;
};

// The job has been suspended or has left its queue, so it gives back its quota, even if it wants
// pods again before the earlier pods have gone: its request may have changed meanwhile.
bool GivesUpAdmission(const api::HorovodJob& job);
// `workload` is null if there is none (any more). For kAdmitted, `changes` is left null.
QueueState QueueStateOf(const api::HorovodJob& job, const WorkloadFacts* workload);
// The job names no queue, but has an admission by this Workload.
QueueState LeavesQueue(const WorkloadFacts& workload);
// The Workload of an earlier job with this name has not been deleted yet.
QueueState WaitsForEarlier(const api::HorovodJob& job, const std::string& workload);
// The state of the queue can't be found out. `why` is for people.
QueueState UnknownQueueState(const api::HorovodJob& job, const std::string& why);
// The admission can't be applied to pods.
QueueState UnusableAdmission(const api::HorovodJob& job, const std::string& why);

}  // namespace ringmaster::kueue
