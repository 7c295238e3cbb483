#include "operator/cli/job_pods.h"

#include <algorithm>
#include <cstdlib>

#include "common/fields/fields.h"
#include "operator/api/labels.h"

namespace ringmaster::cli {
namespace {

// When the first container of the pod ended, in the kubelet's format, whose texts compare like
// times.
std::string EndedAt(const nlohmann::json& pod) {
  std::string first;
  for (const nlohmann::json& status : fields::ListAt(pod, "/status/containerStatuses")) {
    const std::string at = fields::TextAt(status, "/state/terminated/finishedAt");
    if (!at.empty() && (first.empty() || at < first)) first = at;
  }
  return first;
}

}  // namespace

std::optional<int> ExitCodeOfFailed(const nlohmann::json& pod) {
  for (const char* list : {"/status/containerStatuses", "/status/initContainerStatuses"}) {
    for (const nlohmann::json& status : fields::ListAt(pod, list)) {
      const auto code = static_cast<int>(fields::IntegerAt(status, "/state/terminated/exitCode"));
      if (code != 0) return code;
    }
  }
  return std::nullopt;
}

void JobPods::Observe(const Json& pod, bool gone) {
  const std::string name = fields::TextAt(pod, "/metadata/name");
  indexes_[name] =
      std::atoi(fields::Text(fields::At(pod, "/metadata/labels"), api::kReplicaIndexLabel).c_str());
  if (gone) {
    existing_.erase(name);
  } else {
    existing_[name] = pod;
  }
}

int JobPods::CountRunning() const {
  int running = 0;
  for (const auto& [name, pod] : existing_)
    running += fields::TextAt(pod, "/status/phase") == "Running";
  return running;
}

std::map<std::string, std::string> JobPods::SidecarAddresses() const {
  std::map<std::string, std::string> addresses;
  for (const auto& [name, pod] : existing_) {
    std::string address =
        fields::Text(fields::At(pod, "/metadata/annotations"), api::kHttpAnnotation);
    if (!address.empty()) addresses[name] = std::move(address);
  }
  return addresses;
}

std::optional<int> JobPods::IndexOf(const std::string& pod) const {
  const auto known = indexes_.find(pod);
  return known == indexes_.end() ? std::nullopt : std::optional(known->second);
}

std::string JobPods::First() const {
  const auto first =
      std::min_element(indexes_.begin(), indexes_.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return first == indexes_.end() ? "" : first->first;
}

std::string JobPods::NamedIn(const std::string& text) const {
  const std::string words = " " + text + " ";
  for (const auto& [name, index] : indexes_)
    if (words.find(" " + name + " ") != std::string::npos) return name;
  return "";
}

std::string JobPods::FailedFirst() const {
  std::string failed, failed_at;
  for (const auto& [name, pod] : existing_) {
    if (!ExitCodeOfFailed(pod)) continue;
    const std::string at = EndedAt(pod);
    if (!failed.empty() && at >= failed_at) continue;
    failed = name;
    failed_at = at;
  }
  return failed;
}

}  // namespace ringmaster::cli
