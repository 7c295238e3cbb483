// A Workload is the object by which Kueue decides about a job. This file builds one for a
// HorovodJob, and reads what an existing one says.
//
// Source: docs/kueue.md, "Where this comes from". Plain values and pure functions.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/horovod_job.h"
#include "operator/api/time.h"

namespace ringmaster::kueue {

using Json = nlohmann::json;

// The API version that we use: Kueue serves it since 0.15 and stores it since 0.16.
inline constexpr char kGroup[] = "kueue.x-k8s.io";
inline constexpr char kVersion[] = "v1beta2";
// The pod set that holds all pods of the job.
inline constexpr char kPodSet[] = "worker";

// Condition types of a Workload.
inline constexpr char kQuotaReserved[] = "QuotaReserved";
inline constexpr char kAdmitted[] = "Admitted";
inline constexpr char kEvicted[] = "Evicted";
inline constexpr char kRequeued[] = "Requeued";
inline constexpr char kPodsReady[] = "PodsReady";
inline constexpr char kFinished[] = "Finished";

// The priority that decides the job's place in the queue, instead of that of its pods.
struct Priority {
  std::string class_name;     // empty: only a value
  bool of_workloads = false;  // class_name is a WorkloadPriorityClass; else a PriorityClass
  int value = 0;
};

std::string WorkloadName(const std::string& job);

// By which the operator's cache finds a Workload.
Json WorkloadLabels(const api::HorovodJob& job);

// The Workload of the job. `pod` is one of its pods as it would be created: Kueue counts that pod's
// requests.
Json BuildWorkload(const api::HorovodJob& job, const Json& pod,
                   const std::optional<Priority>& priority);
// Both ask for the same, judging by the digests in their annotations.
bool AskTheSame(const Json& a, const Json& b);

// What an existing Workload says. A missing field, or one of another type, has its default.
struct WorkloadFacts {
  std::string name;
  std::string queue;
  bool deleting = false;
  bool active = true;
  bool quota_reserved = false;
  bool admitted = false;
  bool evicted = false;
  bool finished = false;
  std::optional<api::Time> evicted_at;
  std::string eviction;              // reason and message of the eviction; empty: not evicted
  std::string message;               // Kueue's message about why the job waits
  std::string cluster_queue;         // empty: there is no admission
  int asked = 0;                     // pods that the Workload asks for
  int count = 0;                     // pods that were admitted, perhaps fewer than asked for
  int reclaimable = 0;               // pods that are not needed any more, of those asked for
  bool has_topology = false;         // Kueue has chosen nodes for the pods
  std::vector<std::string> flavors;  // without duplicates
  std::vector<Json> updates;         // podSetUpdates of the admission checks

  // The number of pods that the job may have, which Kueue counts.
  int Granted() const { return std::max(0, std::min(count, asked - reclaimable)); }
};

WorkloadFacts ReadWorkload(const Json& workload);

// The condition of this type, or null. The pointer is valid as long as `workload`.
const Json* FindCondition(const Json& workload, const char* type);

}  // namespace ringmaster::kueue
