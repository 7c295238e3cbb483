#include "operator/kueue/workload.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/fields/fields.h"
#include "operator/api/labels.h"
#include "operator/api/scheduling_spec.h"

namespace ringmaster::kueue {
namespace {

// Kueue's own integrations write this label too: its tools find a job's Workload by it.
constexpr char kUidLabel[] = "kueue.x-k8s.io/job-uid";

Json PodSetOf(const api::HorovodJob& job, const Json& pod) {
  Json set = {{"name", kPodSet},
              {"count", job.WantedPods()},
              {"template", {{"spec", api::SchedulingSpec(pod)}}}};
  if (job.LeastPods() < job.WantedPods()) set["minCount"] = job.LeastPods();
  return set;
}

void PutPriority(const Priority& priority, Json* spec) {
  (*spec)["priority"] = priority.value;
  if (priority.class_name.empty()) return;
  (*spec)["priorityClassRef"] = {
      {"group", priority.of_workloads ? kGroup : "scheduling.k8s.io"},
      {"kind", priority.of_workloads ? "WorkloadPriorityClass" : "PriorityClass"},
      {"name", priority.class_name}};
}

const Json& Assignment(const Json& workload) {
  static const Json kNone = Json::object();
  for (const Json& set : fields::ListAt(workload, "/status/admission/podSetAssignments")) {
    if (fields::Text(set, "name") == kPodSet) return set;
  }
  return kNone;
}

bool IsTrue(const Json& workload, const char* type) {
  const Json* condition = FindCondition(workload, type);
  return condition != nullptr && fields::Text(*condition, "status") == "True";
}

std::string MessageOf(const Json& workload, const char* type) {
  const Json* condition = FindCondition(workload, type);
  return condition == nullptr ? "" : fields::Text(*condition, "message");
}

// Names the admission checks that are not ready: "provision: Pending: waits for nodes".
std::string ChecksThatWait(const Json& workload) {
  std::string text;
  for (const Json& check : fields::ListAt(workload, "/status/admissionChecks")) {
    const std::string state = fields::Text(check, "state");
    if (state == "Ready") continue;
    const std::string message = fields::Text(check, "message");
    text += fmt::format("{}{}: {}{}{}", text.empty() ? "" : "; ", fields::Text(check, "name"),
                        state, message.empty() ? "" : ": ", message);
  }
  return text;
}

std::string EvictionOf(const Json& workload) {
  if (!IsTrue(workload, kEvicted)) return "";
  const Json& condition = *FindCondition(workload, kEvicted);
  return fmt::format("{}: {}", fields::Text(condition, "reason"),
                     fields::Text(condition, "message"));
}

void ReadAssignment(const Json& workload, WorkloadFacts* facts) {
  const Json& assignment = Assignment(workload);
  for (const Json& set : fields::ListAt(workload, "/spec/podSets")) {
    if (fields::Text(set, "name") == kPodSet) {
      facts->asked = static_cast<int>(fields::Integer(set, "count"));
    }
  }
  facts->count = static_cast<int>(fields::Integer(assignment, "count"));
  facts->has_topology = fields::Member(assignment, "topologyAssignment").is_object();
  for (const auto& [resource, flavor] : fields::Object(assignment, "flavors").items()) {
    if (!flavor.is_string()) continue;
    const auto& known = facts->flavors;
    if (std::find(known.begin(), known.end(), flavor) == known.end()) {
      facts->flavors.push_back(flavor);
    }
  }
  for (const Json& set : fields::ListAt(workload, "/status/reclaimablePods")) {
    if (fields::Text(set, "name") != kPodSet) continue;
    facts->reclaimable = static_cast<int>(fields::Integer(set, "count"));
  }
  for (const Json& check : fields::ListAt(workload, "/status/admissionChecks")) {
    for (const Json& update : fields::List(check, "podSetUpdates")) {
      if (fields::Text(update, "name") == kPodSet) facts->updates.push_back(update);
    }
  }
}

}  // namespace

std::string WorkloadName(const std::string& job) { return "horovodjob-" + job; }

Json WorkloadLabels(const api::HorovodJob& job) {
  return {{api::kManagedByLabel, api::kManagedBy},
          {api::kJobNameLabel, job.name},
          {kUidLabel, job.uid}};
}

Json BuildWorkload(const api::HorovodJob& job, const Json& pod,
                   const std::optional<Priority>& priority) {
  Json spec = {{"queueName", job.queue}, {"podSets", Json::array({PodSetOf(job, pod)})}};
  if (priority) PutPriority(*priority, &spec);
  return {{"apiVersion", fmt::format("{}/{}", kGroup, kVersion)},
          {"kind", "Workload"},
          {"metadata",
           {{"name", WorkloadName(job.name)},
            {"namespace", job.ns},
            {"labels", WorkloadLabels(job)},
            {"annotations", {{api::kWorkloadDigestAnnotation, api::Digest(spec)}}},
            {"ownerReferences", Json::array({{{"apiVersion", api::kApiVersion},
                                              {"kind", api::kKind},
                                              {"name", job.name},
                                              {"uid", job.uid},
                                              {"controller", true},
                                              {"blockOwnerDeletion", true}}})}}},
          {"spec", std::move(spec)}};
}

bool AskTheSame(const Json& a, const Json& b) {
  const auto digest = [](const Json& workload) {
    return fields::Text(fields::ObjectAt(workload, "/metadata/annotations"),
                        api::kWorkloadDigestAnnotation);
  };
  return digest(a) == digest(b);
}

const Json* FindCondition(const Json& workload, const char* type) {
  for (const Json& condition : fields::ListAt(workload, "/status/conditions")) {
    if (fields::Text(condition, "type") == type) return &condition;
  }
  return nullptr;
}

WorkloadFacts ReadWorkload(const Json& workload) {
  WorkloadFacts facts;
  facts.name = fields::TextAt(workload, "/metadata/name");
  facts.queue = fields::TextAt(workload, "/spec/queueName");
  facts.deleting = !fields::TextAt(workload, "/metadata/deletionTimestamp").empty();
  facts.active = fields::Flag(fields::Object(workload, "spec"), "active", true);
  facts.quota_reserved = IsTrue(workload, kQuotaReserved);
  facts.admitted = IsTrue(workload, kAdmitted);
  facts.finished = IsTrue(workload, kFinished);
  facts.eviction = EvictionOf(workload);
  facts.evicted = !facts.eviction.empty();
  if (facts.evicted) {
    const Json& condition = *FindCondition(workload, kEvicted);
    facts.evicted_at = api::ParseTime(fields::Text(condition, "lastTransitionTime"));
  }
  facts.message =
      facts.quota_reserved ? ChecksThatWait(workload) : MessageOf(workload, kQuotaReserved);
  facts.cluster_queue = fields::TextAt(workload, "/status/admission/clusterQueue");
  ReadAssignment(workload, &facts);
  return facts;
}

}  // namespace ringmaster::kueue
