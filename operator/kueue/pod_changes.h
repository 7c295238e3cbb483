// What a Kueue admission changes about the pods of a job: where they may go, and what admission
// checks want on them. The job's spec stays as the user wrote it.
//
// Source: docs/kueue.md, "Where this comes from". Plain values and pure functions.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tl/expected.hpp>
#include <vector>

namespace ringmaster::kueue {

using Json = nlohmann::json;

struct PodChanges {
  std::map<std::string, std::string> node_selector;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::vector<Json> tolerations;
  friend bool operator==(const PodChanges&, const PodChanges&) = default;
};

// Merges what the flavours (ResourceFlavor objects) and the admission checks (`podSetUpdates` of
// the pod set) ask for. The error names two requests that contradict each other, or one that
// contradicts the pod template.
tl::expected<PodChanges, std::string> ChangesOf(const std::vector<Json>& flavors,
                                                const std::vector<Json>& updates,
                                                const Json& pod_template);

void Apply(const PodChanges& changes, Json* pod);

}  // namespace ringmaster::kueue
