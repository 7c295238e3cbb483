#include "operator/api/scheduling_spec.h"

#include <fmt/format.h>

#include "common/fields/fields.h"
#include "common/fnv/fnv.h"

namespace ringmaster::api {
namespace {

using Json = nlohmann::json;

// The fields of containers that count for capacity, and those that an API server requires.
Json Containers(const Json& list) {
  Json kept = Json::array();
  for (const Json& container : list) {
    Json one = Json::object();
    for (const char* field : {"name", "image", "resources", "restartPolicy"}) {
      if (container.contains(field)) one[field] = container[field];
    }
    kept.push_back(std::move(one));
  }
  return kept;
}

}  // namespace

Json SchedulingSpec(const Json& pod) {
  const Json& from = fields::Object(pod, "spec");
  Json spec = Json::object();
  for (const char* field :
       {"affinity", "nodeSelector", "overhead", "priorityClassName", "resourceClaims", "resources",
        "runtimeClassName", "schedulerName", "tolerations", "topologySpreadConstraints"}) {
    if (from.contains(field)) spec[field] = from[field];
  }
  spec["containers"] = Containers(fields::List(from, "containers"));
  spec["initContainers"] = Containers(fields::List(from, "initContainers"));
  spec["restartPolicy"] = "Never";
  return spec;
}

std::string Digest(const Json& value) {
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return fmt::format("{:016x}", fnv::Hash().Bytes(text).value());
}

}  // namespace ringmaster::api
