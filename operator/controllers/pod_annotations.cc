#include "operator/controllers/pod_annotations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "common/fields/fields.h"
#include "operator/api/labels.h"

namespace ringmaster::controllers {

using Json = nlohmann::json;

namespace {

// These annotations are understood by cluster-autoscaler and by Karpenter.
constexpr struct {
  const char* key;
  const char* value;
} kShields[] = {{"cluster-autoscaler.kubernetes.io/safe-to-evict", "false"},
                {"karpenter.sh/do-not-disrupt", "true"}};

}  // namespace

void DropOwnAnnotations(Json& pod) {
  const auto metadata = pod.find("metadata");
  if (metadata == pod.end() || !metadata->contains("annotations")) return;
  for (const char* name :
       {api::kDrainAnnotation, api::kDrainSinceAnnotation, api::kHttpAnnotation,
        api::kBootAnnotation, api::kProvenAnnotation, api::kHeldAnnotation, api::kWarnedAnnotation,
        api::kWarnedSinceAnnotation, api::kAnnouncedAnnotation, api::kTopologyAnnotation,
        api::kCallsForNodesAnnotation, api::kShieldAnnotation, api::kMadeFromAnnotation,
        api::kMadeAtAnnotation}) {
    (*metadata)["annotations"].erase(name);
  }
}

void WriteMadeFrom(Json& pod, const std::string& pods_digest, std::int64_t generation) {
  Json& annotations = pod["metadata"]["annotations"];
  annotations[api::kMadeFromAnnotation] = pods_digest;
  annotations[api::kMadeAtAnnotation] = std::to_string(generation);
}

void WriteShields(Json& pod) {
  Json& annotations = pod["metadata"]["annotations"];
  if (!annotations.is_object()) annotations = Json::object();
  std::vector<std::string> written;
  for (const auto& [key, value] : kShields) {
    if (annotations.contains(key)) continue;
    annotations[key] = value;
    written.push_back(key);
  }
  if (!written.empty())
    annotations[api::kShieldAnnotation] = fmt::format("{}", fmt::join(written, ","));
}

std::vector<std::string> ReadShields(const Json& annotations) {
  std::vector<std::string> shields;
  const std::string ours = "," + fields::Text(annotations, api::kShieldAnnotation) + ",";
  for (const auto& [key, value] : kShields) {
    const bool is_ours = ours.find(fmt::format(",{},", key)) != std::string::npos;
    if (is_ours && fields::Text(annotations, key) == value) shields.push_back(key);
  }
  return shields;
}

void WriteAnnounced(Json& pod, const std::map<std::string, std::string>& announced) {
  if (announced.empty()) return;
  Json& annotations = pod["metadata"]["annotations"];
  if (!annotations.is_object()) annotations = Json::object();
  annotations[api::kAnnouncedAnnotation] = Json(announced).dump();
}

}  // namespace ringmaster::controllers
