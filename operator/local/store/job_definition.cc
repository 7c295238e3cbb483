#include "operator/local/store/job_definition.h"

#include "operator/kube/resources.h"
#include "operator/local/store/admission.h"

namespace ringmaster::local {
namespace {

std::optional<CrdSchema> Load(const std::string& yaml) {
  auto schema = CrdSchema::FromYaml(yaml);
  return schema ? std::optional<CrdSchema>(std::move(*schema)) : std::nullopt;
}

}  // namespace

JobDefinition::JobDefinition(const std::string& crd_yaml) : schema_(Load(crd_yaml)) {}

Answer<void> JobDefinition::Admit(Json& job, const std::string& name, const Json* before,
                                  bool strict, std::vector<std::string>* dropped) const {
  if (!schema_) return {};
  const Resource& resource = kube::HorovodJobs();
  std::vector<std::string> unknown = schema_->Prune(job);
  if (strict && !unknown.empty()) {
    std::string list;
    for (const std::string& path : unknown) {
      list += (list.empty() ? "" : ", ") + ("unknown field \"" + path + "\"");
    }
    return tl::unexpected(CannotDecode(resource, "strict decoding error: " + list));
  }
  if (dropped) *dropped = std::move(unknown);
  schema_->Default(job);
  std::vector<Cause> causes = schema_->Validate(job);
  if (causes.empty() && schema_->has_rules()) causes = CheckJob(before, job);
  if (!causes.empty()) return tl::unexpected(Invalid(resource, name, causes));
  return {};
}

Json JobDefinition::ScaleOf(const Json& job) const {
  const CrdSchema paths = schema_.value_or(CrdSchema());
  Json meta;
  for (const char* key : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    meta[key] = job["metadata"][key];
  }
  Json scale = {{"kind", "Scale"},
                {"apiVersion", "autoscaling/v1"},
                {"metadata", meta},
                {"spec", Json::object()},
                {"status", {{"replicas", 0}}}};
  if (Json n = ValueAt(job, paths.spec_replicas_path); n.is_number()) {
    scale["spec"]["replicas"] = n;
  }
  if (Json n = ValueAt(job, paths.status_replicas_path); n.is_number()) {
    scale["status"]["replicas"] = n;
  }
  if (Json s = ValueAt(job, paths.label_selector_path); s.is_string()) {
    scale["status"]["selector"] = s;
  }
  return scale;
}

Answer<Json> JobDefinition::WithScale(const Json& job, const Json& scale) const {
  const Json::json_pointer wanted("/spec/replicas");
  if (!scale.is_object() || !scale.contains(wanted) || !scale[wanted].is_number_integer() ||
      scale[wanted].get<int64_t>() < 0) {
    return tl::unexpected(Invalid(
        {"autoscaling", "v1", "scales", "Scale", true}, job["metadata"]["name"],
        {{"FieldValueInvalid", "Invalid value: must be an integer greater than or equal to 0",
          "spec.replicas"}}));
  }
  Json object = job;
  object[PointerOf(schema_.value_or(CrdSchema()).spec_replicas_path)] = scale[wanted];
  std::string version = scale.value("metadata", Json::object()).value("resourceVersion", "");
  if (!version.empty()) object["metadata"]["resourceVersion"] = version;
  return object;
}

}  // namespace ringmaster::local
