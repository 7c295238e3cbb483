// Disruption budgets: their status, and what they say to an eviction.
#include <algorithm>
#include <cmath>

#include "operator/kube/resources.h"
#include "operator/local/store.h"

namespace ringmaster::local {
namespace {

bool Ready(const Json& pod) {
  const Json status = pod.value("status", Json::object());
  for (const Json& c : status.value("conditions", Json::array())) {
    if (c.value("type", "") == "Ready") return c.value("status", "") == "True";
  }
  return false;
}

// An integer or a percentage of `total`, rounded up as the disruption controller does.
int Share(const Json& value, int total) {
  if (value.is_number_integer()) return value.get<int>();
  if (!value.is_string()) return 0;
  return static_cast<int>(std::ceil(std::atof(value.get<std::string>().c_str()) * total / 100.0));
}

}  // namespace

// Nullopt: its selector can't be read.
std::optional<Store::BudgetCount> Store::CountBudget(const std::string& ns,
                                                     const Json& budget) const {
  const Json spec = budget.value("spec", Json::object());
  auto selector = kube::LabelSelector::FromJson(spec.value("selector", Json::object()));
  if (!selector) return std::nullopt;
  BudgetCount count{*selector, 0, 0, 0};
  for (const auto& [name, pod] : BucketOf(kube::Pods()).objects) {
    std::string phase = pod->value("status", Json::object()).value("phase", "");
    if (name.first != ns || !selector->Matches(*pod) || phase == "Succeeded" || phase == "Failed")
      continue;
    ++count.total;
    count.healthy += Ready(*pod) && !(*pod)["metadata"].contains("deletionTimestamp");
  }
  count.needed = spec.contains("maxUnavailable")
                     ? count.total - Share(spec["maxUnavailable"], count.total)
                     : Share(spec.value("minAvailable", Json(0)), count.total);
  return count;
}

// A real cluster's controller does this a moment later.
void Store::UpdateBudgets(const std::string& ns) {
  std::vector<std::pair<Key, Object>> changed;
  for (const auto& [key, budget] : BucketOf(kube::PodDisruptionBudgets()).objects) {
    if (key.first != ns) continue;
    auto count = CountBudget(ns, *budget);
    if (!count) continue;
    Json status = {{"currentHealthy", count->healthy},
                   {"desiredHealthy", std::max(count->needed, 0)},
                   {"expectedPods", count->total},
                   {"disruptionsAllowed", std::max(count->healthy - count->needed, 0)},
                   {"observedGeneration", (*budget)["metadata"].value("generation", 1)}};
    if (budget->value("status", Json()) == status) continue;
    Json next = *budget;
    next["status"] = std::move(status);
    changed.emplace_back(key, std::make_shared<const Json>(std::move(next)));
  }
  for (const auto& [key, next] : changed) {
    Commit(kube::PodDisruptionBudgets(), key, Find(kube::PodDisruptionBudgets(), ns, key.second),
           *next);
  }
}

Answer<void> Store::CheckBudgets(const Json& pod) const {
  std::string ns = pod["metadata"]["namespace"];
  for (const auto& [key, budget] : BucketOf(kube::PodDisruptionBudgets()).objects) {
    if (key.first != ns) continue;
    auto count = CountBudget(ns, *budget);
    if (!count || !count->selector.Matches(pod)) continue;
    // A pod that isn't ready may go as long as enough others are.
    bool enough =
        Ready(pod) ? count->healthy - 1 >= count->needed : count->healthy >= count->needed;
    if (enough) continue;
    Json status = Failure(429, "TooManyRequests",
                          "Cannot evict pod as it would violate the pod's disruption budget.");
    status["details"] = {
        {"causes",
         {{{"reason", "DisruptionBudget"},
           {"message", "The disruption budget " + key.second + " needs " +
                           std::to_string(count->needed) + " healthy pods and has " +
                           std::to_string(count->healthy) + " currently"}}}}};
    return tl::unexpected(std::move(status));
  }
  return {};
}

Answer<void> Store::Evict(const std::string& ns, const std::string& pod,
                          const kube::DeleteOptions& options) {
  return Locked([&] { return EvictLocked(ns, pod, options); });
}

Answer<void> Store::EvictLocked(const std::string& ns, const std::string& pod,
                                const kube::DeleteOptions& options) {
  Object live = Find(kube::Pods(), ns, pod);
  if (!live) return tl::unexpected(NotFound(kube::Pods(), pod));
  std::string phase = live->value("status", Json::object()).value("phase", "");
  bool counts = phase == "Running" && !(*live)["metadata"].contains("deletionTimestamp");
  if (counts) {
    if (auto ok = CheckBudgets(*live); !ok) return ok;
    Json object = *live;
    Json& status = object["status"];
    if (!status.contains("conditions")) status["conditions"] = Json::array();
    status["conditions"].push_back({{"type", "DisruptionTarget"},
                                    {"status", "True"},
                                    {"reason", "EvictionByEvictionAPI"},
                                    {"message", "Eviction API: evicting"},
                                    {"lastTransitionTime", Now()}});
    Commit(kube::Pods(), {ns, pod}, live, std::move(object));
  }
  auto deleted = DeleteLocked(kube::Pods(), ns, pod, options);
  if (!deleted) return tl::unexpected(deleted.error());
  return {};
}

}  // namespace ringmaster::local
