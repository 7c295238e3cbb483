#include "operator/controllers/pod_identity.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "common/fields/fields.h"
#include "operator/api/labels.h"
#include "operator/api/object_key.h"
#include "operator/planner/planner.h"

namespace ringmaster::controllers {

using Json = nlohmann::json;

Json OwnerReference(const std::string& job_name, const std::string& job_uid) {
  return {{"apiVersion", api::kApiVersion},
          {"kind", api::kKind},
          {"name", job_name},
          {"uid", job_uid},
          {"controller", true},
          {"blockOwnerDeletion", true}};
}

std::string JobKeyOf(const Json& pod) {
  const Json& metadata = fields::Member(pod, "metadata");
  std::string job = fields::Text(fields::Member(metadata, "labels"), api::kJobNameLabel);
  for (const Json& owner : fields::List(metadata, "ownerReferences")) {
    if (fields::Flag(owner, "controller") && fields::Text(owner, "kind") == api::kKind) {
      job = fields::Text(owner, "name");
    }
  }
  return api::KeyText(fields::Text(metadata, "namespace"), job);
}

Json LabelsOf(const api::HorovodJob& job, int index) {
  return {{api::kJobNameLabel, job.name},
          {api::kJobUidLabel, job.uid},
          {api::kJobRoleLabel, api::kWorkerRole},
          {api::kReplicaIndexLabel, std::to_string(index)}};
}

bool HasLabels(const Json& pod, const Json& labels) {
  const Json& has = fields::Member(fields::Member(pod, "metadata"), "labels");
  const auto wanted = labels.items();
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& label) {
    return fields::Member(has, label.key().c_str()) == label.value();
  });
}

std::optional<int> IndexOf(const std::string& job_name, const std::string& pod) {
  int index = -1;
  const std::size_t digits = pod.rfind('-') + 1;  // npos + 1 is 0
  std::from_chars(pod.data() + digits, pod.data() + pod.size(), index);
  return planner::PodName(job_name, index) == pod ? std::optional(index) : std::nullopt;
}

bool IsOwnedBy(const Json& object, const std::string& uid) {
  const Json& owners = fields::List(fields::Member(object, "metadata"), "ownerReferences");
  return std::any_of(owners.begin(), owners.end(), [&](const Json& owner) {
    return fields::Flag(owner, "controller") && fields::Text(owner, "uid") == uid;
  });
}

}  // namespace ringmaster::controllers
