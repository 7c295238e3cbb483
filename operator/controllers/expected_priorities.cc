#include "operator/controllers/expected_priorities.h"

#include <nlohmann/json.hpp>

#include "common/fields/fields.h"
#include "operator/runtime/informer.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;

ExpectedPriority OfClass(const Json& priority_class) {
  return {.class_name = runtime::MetaField(priority_class, "name"),
          .value = static_cast<int>(fields::Integer(priority_class, "value"))};
}

}  // namespace

kube::Result<std::optional<ExpectedPriority>> ExpectedPriorities::Of(const api::HorovodJob& job) {
  const Json& spec = job.spec.worker.pod_template.at("spec");
  std::string name = fields::Text(spec, "priorityClassName");
  if (name.empty()) name = job.spec.run_policy.scheduling_policy.priority_class;
  if (!name.empty()) {
    const auto found = lookup_.Get(kube::PriorityClasses(), name);
    if (!found) return tl::unexpected(found.error());
    return OfClass(*found);
  }
  if (!spec.contains("priority")) return Default();
  return ExpectedPriority{"", static_cast<int>(fields::Integer(spec, "priority"))};
}

// Of several defaults the API server takes the one with the lowest value.
kube::Result<std::optional<ExpectedPriority>> ExpectedPriorities::Default() {
  const auto classes = lookup_.List(kube::PriorityClasses());
  // A role of an earlier version lacks the right to list them.
  if (!classes && classes.error().code == kube::ErrorCode::kForbidden) return std::nullopt;
  if (!classes) return tl::unexpected(classes.error());
  std::optional<ExpectedPriority> lowest;
  for (const Json& one : *classes) {
    if (!fields::Flag(one, "globalDefault")) continue;
    ExpectedPriority found = OfClass(one);
    if (!lowest || found.value < lowest->value) lowest = std::move(found);
  }
  return lowest;
}

}  // namespace ringmaster::controllers
