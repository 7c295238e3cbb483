#include "operator/app/testing/kueue_stand_in.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "common/fields/fields.h"
#include "operator/api/time.h"
#include "operator/kueue/workload.h"

namespace ringmaster::app {
namespace {

using kube::Json;

constexpr char kNamespace[] = "default";

Json Condition(const char* type, bool on, const std::string& reason, const std::string& message) {
  return {{"type", type},
          {"status", on ? "True" : "False"},
          {"reason", reason},
          {"message", message},
          {"lastTransitionTime", api::FormatTime(std::chrono::system_clock::now())}};
}

const Json& PodSet(const Json& workload) { return workload["spec"]["podSets"][0]; }

// Counts as Kueue does (totalRequestsFromAdmission of pkg/workload): reclaimable pods are
// subtracted from what the Workload asks for, whether or not that was admitted.
int CountAfterReclaim(const Json& workload) {
  int count = PodSet(workload)["count"];
  for (const Json& set : fields::ListAt(workload, "/status/reclaimablePods")) {
    if (set["name"] == kueue::kPodSet) count -= set["count"].get<int>();
  }
  return count;
}

bool IsDeactivated(const Json& workload) {
  const Json* evicted = kueue::FindCondition(workload, kueue::kEvicted);
  return evicted != nullptr && fields::Text(*evicted, "reason") == "Deactivated";
}

// The workload was evicted, and was not put in line again.
bool IsOutOfLine(const Json& workload) {
  const Json* requeued = kueue::FindCondition(workload, kueue::kRequeued);
  return requeued != nullptr && fields::Text(*requeued, "status") == "False";
}

}  // namespace

Json KueueStandIn::Workload(const std::string& name) const {
  const auto found = api_->Get(kube::Workloads(), kNamespace, name);
  return found ? *found : Json();
}

void KueueStandIn::PatchStatus(const Json& workload, Json status,
                               const std::vector<Json>& conditions) {
  Json list = fields::ListAt(workload, "/status/conditions");
  for (const Json& condition : conditions) {
    const auto at = std::find_if(list.begin(), list.end(),
                                 [&](const Json& one) { return one["type"] == condition["type"]; });
    if (at == list.end()) {
      list.push_back(condition);
    } else {
      *at = condition;
    }
  }
  status["conditions"] = std::move(list);
  // After a conflict the next Step decides again.
  (void)api_->Patch(
      kube::Workloads(), kNamespace, fields::TextAt(workload, "/metadata/name"),
      {{"metadata", {{"resourceVersion", fields::TextAt(workload, "/metadata/resourceVersion")}}},
       {"status", std::move(status)}},
      {.subresource = "status"});
}

void KueueStandIn::Evict(const std::string& name, const std::string& reason,
                         const std::string& message) {
  PatchStatus(Workload(name), Json::object(), {Condition(kueue::kEvicted, true, reason, message)});
}

int KueueStandIn::Used(const std::vector<Json>& workloads) const {
  int used = 0;
  for (const Json& workload : workloads) {
    const auto facts = kueue::ReadWorkload(workload);
    if (!facts.quota_reserved || facts.finished) continue;
    used += std::min(facts.count, CountAfterReclaim(workload));
  }
  return used;
}

void KueueStandIn::Step() {
  const auto listed = api_->ListAll(kube::Workloads(), kNamespace, {});
  if (!listed) return;
  std::vector<Json> workloads;
  for (const Json& workload : listed->items) {
    Check(workload);
    if (fields::TextAt(workload, "/spec/queueName") == options_.queue)
      workloads.push_back(workload);
  }
  std::sort(workloads.begin(), workloads.end(), [](const Json& a, const Json& b) {
    const auto rank = [](const Json& workload) {
      return std::tuple(-fields::IntegerAt(workload, "/spec/priority"),
                        fields::TextAt(workload, "/metadata/creationTimestamp"));
    };
    return rank(a) < rank(b);
  });
  const int room = options_.quota - Used(workloads);
  for (const Json& workload : workloads) {
    const auto facts = kueue::ReadWorkload(workload);
    if (facts.finished || facts.deleting) continue;
    if (facts.quota_reserved && !facts.active && !facts.evicted) {
      return PatchStatus(
          workload, Json::object(),
          {Condition(kueue::kEvicted, true, "Deactivated", "The workload is deactivated")});
    }
    if (facts.quota_reserved || !facts.active) continue;
    if (IsOutOfLine(workload)) {
      if (!IsDeactivated(workload)) continue;
      return PatchStatus(workload, Json::object(),
                         {Condition(kueue::kRequeued, true, "Reactivated",
                                    "The workload was reactivated after deactivation")});
    }
    return Decide(workload, room);
  }
}

void KueueStandIn::Decide(const Json& workload, int room) {
  const int count = CountAfterReclaim(workload);
  const int least = PodSet(workload).value("minCount", count);
  const int granted = std::min(count, room);
  if (granted < least) {
    const std::string message = fmt::format(
        "couldn't assign flavors to pod set worker: insufficient unused quota for {} "
        "in flavor {}, {} more needed",
        options_.resource, options_.flavor, count - room);
    const Json* before = kueue::FindCondition(workload, kueue::kQuotaReserved);
    if (before != nullptr && fields::Text(*before, "message") == message) return;
    return PatchStatus(workload, Json::object(),
                       {Condition(kueue::kQuotaReserved, false, "Pending", message)});
  }
  std::vector<Json> conditions = {
      Condition(kueue::kQuotaReserved, true, "QuotaReserved",
                "Quota reserved in ClusterQueue cluster-queue"),
      Condition(kueue::kAdmitted, true, "Admitted", "The workload is admitted")};
  if (const Json* evicted = kueue::FindCondition(workload, kueue::kEvicted)) {
    conditions.push_back(Condition(kueue::kEvicted, false, "QuotaReserved",
                                   "Previously: " + fields::Text(*evicted, "message")));
  }
  PatchStatus(workload,
              {{"admission",
                {{"clusterQueue", "cluster-queue"},
                 {"podSetAssignments",
                  {{{"name", kueue::kPodSet},
                    {"flavors", {{options_.resource, options_.flavor}}},
                    {"count", granted}}}}}}},
              conditions);
}

// Checks an object that holds quota, before and after a change.
void KueueStandIn::Check(const Json& workload) {
  const std::string name = fields::TextAt(workload, "/metadata/name");
  const auto facts = kueue::ReadWorkload(workload);
  const auto before = seen_.find(name);
  const bool same =
      before != seen_.end() && before->second["metadata"]["uid"] == workload["metadata"]["uid"];
  if (same && facts.quota_reserved && kueue::ReadWorkload(before->second).quota_reserved) {
    if (before->second["spec"]["podSets"] != workload["spec"]["podSets"]) {
      violations_.push_back(name + ": podSets were changed while quota is reserved");
    }
    if (facts.reclaimable < kueue::ReadWorkload(before->second).reclaimable) {
      violations_.push_back(name + ": reclaimablePods became fewer while quota is reserved");
    }
  }
  if (!facts.quota_reserved && fields::At(workload, "/status/admission").is_object()) {
    violations_.push_back(name + ": it has an admission and no quota");
  }
  seen_[name] = workload;
}

}  // namespace ringmaster::app
