// A Workload: the object by which Kueue decides about a job. This is how one is made for a
// HorovodJob, and what one that is there says.
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

// The version that is spoken: Kueue serves it since 0.15 and stores it since 0.16.
inline constexpr char kGroup[] = "kueue.x-k8s.io";
inline constexpr char kVersion[] = "v1beta2";
// Of all pods of the job.
inline constexpr char kPodSet[] = "worker";

// Condition types of a Workload.
inline constexpr char kQuotaReserved[] = "QuotaReserved";
inline constexpr char kAdmitted[] = "Admitted";
inline constexpr char kEvicted[] = "Evicted";
inline constexpr char kRequeued[] = "Requeued";
inline constexpr char kPodsReady[] = "PodsReady";
inline constexpr char kFinished[] = "Finished";

// Where the job stands in line, before its pods have a priority of their own.
struct Priority {
  std::string class_name;     // empty: only a value
  bool of_workloads = false;  // a WorkloadPriorityClass, else a PriorityClass
  int value = 0;
};

std::string WorkloadName(const std::string& job);

// The Workload of the job. `pod` is one of its pods as it would be made: what it asks for of a
// node is what Kueue counts.
Json BuildWorkload(const api::HorovodJob& job, const Json& pod,
                   const std::optional<Priority>& priority);
// Both ask for the same, as far as the one who made them has written down.
bool AskTheSame(const Json& a, const Json& b);

// What a Workload that is there says. What is missing or of another type counts as not said.
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
  std::string eviction;              // why and in which words; empty: not evicted
  std::string message;               // Kueue's own, of why it waits
  std::string cluster_queue;         // empty: no admission
  int asked = 0;                     // pods that it asks for
  int count = 0;                     // of these: were admitted, maybe fewer
  int reclaimable = 0;               // of those that it asks for: not needed any more
  bool has_topology = false;         // Kueue has chosen nodes for the pods
  std::vector<std::string> flavors;  // each once
  std::vector<Json> updates;         // podSetUpdates of the admission checks

  // The pods that the job may have, and that Kueue counts.
  int Granted() const { return std::max(0, std::min(count, asked - reclaimable)); }
};

WorkloadFacts ReadWorkload(const Json& workload);

// The condition of this type; null: there is none. It lives as long as `workload`.
const Json* FindCondition(const Json& workload, const char* type);

}  // namespace ringmaster::kueue
