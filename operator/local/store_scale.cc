// The scale subresource of HorovodJobs.
#include "operator/kube/resources.h"
#include "operator/local/store.h"

namespace ringmaster::local {
namespace {

std::string Pointer(std::string path) {
  for (char& c : path) c = c == '.' ? '/' : c;
  return path;
}

}  // namespace

Json Store::ScaleOf(const Json& object) const {
  CrdSchema paths;
  if (crd_) paths = *crd_;
  auto at = [&](const std::string& path) -> Json {
    Json::json_pointer pointer(Pointer(path));
    return !path.empty() && object.contains(pointer) ? object[pointer] : Json();
  };
  Json meta;
  for (const char* key : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    meta[key] = object["metadata"][key];
  }
  Json scale = {{"kind", "Scale"},
                {"apiVersion", "autoscaling/v1"},
                {"metadata", meta},
                {"spec", Json::object()},
                {"status", {{"replicas", 0}}}};
  if (Json n = at(paths.spec_replicas_path); n.is_number()) scale["spec"]["replicas"] = n;
  if (Json n = at(paths.status_replicas_path); n.is_number()) scale["status"]["replicas"] = n;
  if (Json s = at(paths.label_selector_path); s.is_string()) scale["status"]["selector"] = s;
  return scale;
}

Answer<Json> Store::GetScale(const std::string& ns, const std::string& name) const {
  std::lock_guard lock(mu_);
  Object live = Find(kube::HorovodJobs(), ns, name);
  if (!live) return tl::unexpected(NotFound(kube::HorovodJobs(), name));
  return ScaleOf(*live);
}

Answer<Json> Store::UpdateScaleLocked(const Resource& resource, const Json& live,
                                      const Json& scale) {
  if (resource != kube::HorovodJobs()) {
    return tl::unexpected(
        Failure(404, "NotFound", "the server could not find the requested resource"));
  }
  std::string name = live["metadata"]["name"];
  Json::json_pointer wanted("/spec/replicas");
  if (!scale.is_object() || !scale.contains(wanted) || !scale[wanted].is_number_integer() ||
      scale[wanted].get<int64_t>() < 0) {
    return tl::unexpected(Invalid(
        {"autoscaling", "v1", "scales", "Scale", true}, name,
        {{"FieldValueInvalid", "Invalid value: must be an integer greater than or equal to 0",
          "spec.replicas"}}));
  }
  Json object = live;
  object[Json::json_pointer(
      Pointer(crd_ ? crd_->spec_replicas_path : CrdSchema().spec_replicas_path))] = scale[wanted];
  std::string version = scale.value("metadata", Json::object()).value("resourceVersion", "");
  if (!version.empty()) object["metadata"]["resourceVersion"] = version;
  auto updated =
      UpdateLocked(resource, live["metadata"]["namespace"], name, std::move(object), "", {});
  if (!updated) return updated;
  return ScaleOf(*updated);
}

}  // namespace ringmaster::local
