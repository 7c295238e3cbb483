// How important the pods of a job will be, before there are any: what the API server will write
// into the field `spec.priority` of each.
//
// Thread rule: safe from any thread; blocks for a call if a class is unknown or was read long ago.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "operator/api/horovod_job.h"
#include "operator/controllers/object_lookup.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::controllers {

struct ExpectedPriority {
  std::string class_name;  // of a PriorityClass; empty: the number stands in the template
  int value = 0;
};

class ExpectedPriorities {
 public:
  explicit ExpectedPriorities(std::shared_ptr<kube::KubeApi> api) : lookup_(std::move(api)) {}

  // By the class that the pod template names, else by that of the scheduling policy, else by the
  // number in the template, else by the class that is the cluster's default. nullopt: by none of
  // these, which Kubernetes counts as 0. An error: the class can't be read, or is not there.
  kube::Result<std::optional<ExpectedPriority>> Of(const api::HorovodJob& job);

 private:
  kube::Result<std::optional<ExpectedPriority>> Default();

  ObjectLookup lookup_;
};

}  // namespace ringmaster::controllers
