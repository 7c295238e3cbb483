#include "operator/page/pod_priorities.h"

#include "common/fields/fields.h"

namespace ringmaster::page {
namespace {

using Json = nlohmann::json;

// A label would not be enough, because anyone could put it on their own pod.
std::string OwnerOf(const Json& pod) {
  for (const Json& owner : fields::ListAt(pod, "/metadata/ownerReferences"))
    if (fields::Flag(owner, "controller")) return fields::Text(owner, "uid");
  return "";
}

}  // namespace

void PodPriorities::Remember(const Json& pod) {
  const std::string job = OwnerOf(pod);
  if (job.empty()) return;
  const auto priority = static_cast<int>(fields::IntegerAt(pod, "/spec/priority"));
  sync::MutexLock lock(&mu_);
  if (by_job_.size() >= kMostJobs && by_job_.count(job) == 0) by_job_.clear();
  by_job_[job] = priority;
}

std::optional<int> PodPriorities::Of(const Json& job) const {
  const std::string uid = fields::TextAt(job, "/metadata/uid");
  sync::MutexLock lock(&mu_);
  const auto known = by_job_.find(uid);
  if (known != by_job_.end()) return known->second;
  const Json& of_status = fields::At(job, "/status/priority");
  return of_status.is_number_integer() ? std::optional(of_status.get<int>()) : std::nullopt;
}

}  // namespace ringmaster::page
