#include "operator/controllers/node_affinity.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "operator/api/labels.h"

namespace ringmaster::controllers {
namespace {

using Json = nlohmann::json;

// Returns the member of this name; replaces it by `empty` if it is missing or of another type.
Json& Child(Json& object, const char* name, Json empty) {
  Json& child = object[name];
  if (child.type() != empty.type()) child = std::move(empty);
  return child;
}

Json& NodeAffinity(Json& pod) {
  return Child(Child(pod["spec"], "affinity", Json::object()), "nodeAffinity", Json::object());
}

// A field requirement takes only one node.
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
  // A node needs to match only one of the terms, so each of them has to exclude these nodes.
  for (Json& term : terms) {
    for (const Json& field : NoneOf(nodes)) {
      Child(term, "matchFields", Json::array()).push_back(field);
    }
  }
}

void KeepTogether(Json& pod, const api::TopologyPolicy& topology, const std::string& job_uid) {
  if (topology.label.empty()) return;
  const Json term = {{"topologyKey", topology.label},
                     {"labelSelector", {{"matchLabels", {{api::kJobUidLabel, job_uid}}}}}};
  Json& affinity =
      Child(Child(pod["spec"], "affinity", Json::object()), "podAffinity", Json::object());
  if (topology.required) {
    Child(affinity, "requiredDuringSchedulingIgnoredDuringExecution", Json::array())
        .push_back(term);
  } else {
    Child(affinity, "preferredDuringSchedulingIgnoredDuringExecution", Json::array())
        .push_back({{"weight", 100}, {"podAffinityTerm", term}});
  }
}

void PutInDomain(Json& pod, const api::TopologyPolicy& topology, const std::string& domain) {
  if (topology.label.empty() || domain.empty()) return;
  Child(pod["metadata"], "annotations", Json::object())[api::kTopologyAnnotation] =
      topology.label + "=" + domain;
  if (topology.required) {
    Child(pod["spec"], "nodeSelector", Json::object())[topology.label] = domain;
    return;
  }
  const Json there = {{"key", topology.label}, {"operator", "In"}, {"values", {domain}}};
  Child(NodeAffinity(pod), "preferredDuringSchedulingIgnoredDuringExecution", Json::array())
      .push_back({{"weight", 100}, {"preference", {{"matchExpressions", Json::array({there})}}}});
}

std::string DomainOf(const std::string& annotation, const api::TopologyPolicy& topology) {
  const std::string begin = topology.label + "=";
  return topology.label.empty() || annotation.rfind(begin, 0) != 0
             ? std::string()
             : annotation.substr(begin.size());
}

}  // namespace ringmaster::controllers
