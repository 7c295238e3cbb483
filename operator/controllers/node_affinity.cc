#include "operator/controllers/node_affinity.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace ringmaster::controllers {
namespace {

using Json = nlohmann::json;

// An object or array field that is made if it isn't there.
Json& Child(Json& object, const char* name, Json empty) {
  Json& child = object[name];
  if (child.type() != empty.type()) child = std::move(empty);
  return child;
}

Json& NodeAffinity(Json& pod) {
  return Child(Child(pod["spec"], "affinity", Json::object()), "nodeAffinity", Json::object());
}

// A field names one node.
Json NoneOf(const std::vector<std::string>& nodes) {
  Json fields = Json::array();
  for (const std::string& node : nodes) {
    fields.push_back({{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", {node}}});
  }
  return fields;
}

}  // namespace

void AvoidNodes(Json& pod, const std::vector<std::string>& nodes) {
  if (nodes.empty()) return;
  Child(NodeAffinity(pod), "preferredDuringSchedulingIgnoredDuringExecution", Json::array())
      .push_back({{"weight", 100}, {"preference", {{"matchFields", NoneOf(nodes)}}}});
}

void KeepOffNodes(Json& pod, const std::vector<std::string>& nodes) {
  if (nodes.empty()) return;
  Json& required =
      Child(NodeAffinity(pod), "requiredDuringSchedulingIgnoredDuringExecution", Json::object());
  Json& terms = Child(required, "nodeSelectorTerms", Json::array());
  if (terms.empty()) terms.push_back({{"matchFields", Json::array()}});
  // One of the terms is enough for a node, so each of them has to refuse these.
  for (Json& term : terms) {
    for (const Json& field : NoneOf(nodes)) {
      Child(term, "matchFields", Json::array()).push_back(field);
    }
  }
}

}  // namespace ringmaster::controllers
