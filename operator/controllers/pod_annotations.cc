#include "operator/controllers/pod_annotations.h"

#include <nlohmann/json.hpp>

#include "operator/api/labels.h"

namespace ringmaster::controllers {

using Json = nlohmann::json;

void DropOwnAnnotations(Json& pod) {
  const auto metadata = pod.find("metadata");
  if (metadata == pod.end() || !metadata->contains("annotations")) return;
  for (const char* name :
       {api::kDrainAnnotation, api::kDrainSinceAnnotation, api::kHttpAnnotation,
        api::kBootAnnotation, api::kProvenAnnotation, api::kHeldAnnotation, api::kWarnedAnnotation,
        api::kWarnedSinceAnnotation, api::kAnnouncedAnnotation, api::kTopologyAnnotation}) {
    (*metadata)["annotations"].erase(name);
  }
}

void WriteAnnounced(Json& pod, const std::map<std::string, std::string>& announced) {
  if (announced.empty()) return;
  Json& annotations = pod["metadata"]["annotations"];
  if (!annotations.is_object()) annotations = Json::object();
  annotations[api::kAnnouncedAnnotation] = Json(announced).dump();
}

}  // namespace ringmaster::controllers
