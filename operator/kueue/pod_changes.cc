#include "operator/kueue/pod_changes.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/fields/fields.h"

namespace ringmaster::kueue {
namespace {

using Texts = std::map<std::string, std::string>;
using Merged = tl::expected<void, std::string>;

Texts TextsAt(const Json& object, const char* pointer) {
  Texts texts;
  for (const auto& [key, value] : fields::ObjectAt(object, pointer).items()) {
    if (value.is_string()) texts[key] = value.get<std::string>();
  }
  return texts;
}

Merged Merge(const Texts& from, const std::string& who, const char* what, Texts* into) {
  for (const auto& [key, value] : from) {
    const auto [at, added] = into->emplace(key, value);
    if (!added && at->second != value) {
      return tl::unexpected(fmt::format("{} wants {} {}={}, and it is {} already", who, what, key,
                                        value, at->second));
    }
  }
  return {};
}

void AddTolerations(const Json& list, std::vector<Json>* into) {
  for (const Json& toleration : list) {
    if (std::find(into->begin(), into->end(), toleration) == into->end()) {
      into->push_back(toleration);
    }
  }
}

Merged AddFlavor(const Json& flavor, PodChanges* changes) {
  const std::string who = fmt::format("flavour {}", fields::TextAt(flavor, "/metadata/name"));
  AddTolerations(fields::ListAt(flavor, "/spec/tolerations"), &changes->tolerations);
  return Merge(TextsAt(flavor, "/spec/nodeLabels"), who, "node label", &changes->node_selector);
}

Merged AddUpdate(const Json& update, PodChanges* changes) {
  const std::string who = "an admission check";
  AddTolerations(fields::List(update, "tolerations"), &changes->tolerations);
  Merged merged =
      Merge(TextsAt(update, "/nodeSelector"), who, "node label", &changes->node_selector);
  if (merged) merged = Merge(TextsAt(update, "/labels"), who, "label", &changes->labels);
  if (merged)
    merged = Merge(TextsAt(update, "/annotations"), who, "annotation", &changes->annotations);
  return merged;
}

// An admission must not silently overrule what the user asked for.
Merged CheckAgainst(const Json& pod_template, const PodChanges& changes) {
  const std::string who = "the admission";
  Texts selector = TextsAt(pod_template, "/spec/nodeSelector");
  Texts labels = TextsAt(pod_template, "/metadata/labels");
  Texts annotations = TextsAt(pod_template, "/metadata/annotations");
  Merged merged = Merge(changes.node_selector, who, "node label", &selector);
  if (merged) merged = Merge(changes.labels, who, "label", &labels);
  if (merged) merged = Merge(changes.annotations, who, "annotation", &annotations);
  return merged;
}

void Put(const Texts& texts, Json* object, const char* name) {
  for (const auto& [key, value] : texts) (*object)[name][key] = value;
}

}  // namespace

tl::expected<PodChanges, std::string> ChangesOf(const std::vector<Json>& flavors,
                                                const std::vector<Json>& updates,
                                                const Json& pod_template) {
  PodChanges changes;
  Merged merged;
  for (const Json& flavor : flavors) {
    if (merged) merged = AddFlavor(flavor, &changes);
  }
  for (const Json& update : updates) {
    if (merged) merged = AddUpdate(update, &changes);
  }
  if (merged) merged = CheckAgainst(pod_template, changes);
  if (!merged) return tl::unexpected(merged.error());
  return changes;
}

void Apply(const PodChanges& changes, Json* pod) {
  Put(changes.labels, &(*pod)["metadata"], "labels");
  Put(changes.annotations, &(*pod)["metadata"], "annotations");
  Json& spec = (*pod)["spec"];
  Put(changes.node_selector, &spec, "nodeSelector");
  for (const Json& toleration : changes.tolerations) {
    const Json& there = fields::List(spec, "tolerations");
    if (std::find(there.begin(), there.end(), toleration) != there.end()) continue;
    spec["tolerations"].push_back(toleration);
  }
}

}  // namespace ringmaster::kueue
