// HorovodJobs as their CustomResourceDefinition has them: what the schema prunes, defaults and
// refuses, and the scale subresource. Without a definition nothing is checked.
//
// Constant after construction. Thread rule: safe from any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/local/store/schema.h"

namespace ringmaster::local {

class JobDefinition {
 public:
  // A text that can't be read counts as none.
  explicit JobDefinition(const std::string& crd_yaml);

  // Defaults and checks of a write. `strict`: unknown fields are refused; else they are dropped,
  // and named in `dropped` unless it is null. `before`: the job that this one replaces, or null.
  Answer<void> Admit(Json& job, const std::string& name, const Json* before, bool strict,
                     std::vector<std::string>* dropped) const;

  Json ScaleOf(const Json& job) const;
  // The job with the replicas that the Scale asks for.
  Answer<Json> WithScale(const Json& job, const Json& scale) const;

 private:
  const std::optional<CrdSchema> schema_;
};

}  // namespace ringmaster::local
