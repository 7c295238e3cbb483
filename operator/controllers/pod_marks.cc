#include "operator/controllers/pod_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/planner/disruption.h"
#include "operator/planner/planner.h"
#include "operator/planner/proof.h"
#include "operator/runtime/informer.h"

namespace ringmaster::controllers {
namespace {

using kube::ErrorCode;
using kube::Json;
using runtime::MetaField;

// Somebody else writes the pod at the same time: the kubelet, mostly.
constexpr int kTries = 5;

Json Finalizers(const Json& pod) {
  if (!pod.is_object()) return Json::array();
  const Json list = pod.value("/metadata/finalizers"_json_pointer, Json::array());
  return list.is_array() ? list : Json::array();
}

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

void DropOperatorsMarks(Json& pod) {
  const auto metadata = pod.find("metadata");
  if (metadata == pod.end() || !metadata->contains("annotations")) return;
  for (const char* mark :
       {planner::kDrainAnnotation, planner::kDrainSinceAnnotation, planner::kHttpAnnotation,
        planner::kBootAnnotation, planner::kProvenAnnotation, planner::kHeldAnnotation,
        planner::kWarnedAnnotation, planner::kWarnedSinceAnnotation,
        planner::kAnnouncedAnnotation}) {
    (*metadata)["annotations"].erase(mark);
  }
}

void AddFinalizer(Json& pod) {
  Child(pod["metadata"], "finalizers", Json::array()).push_back(planner::kProofFinalizer);
}

bool HasFinalizer(const Json& pod) {
  const Json list = Finalizers(pod);
  return std::find(list.begin(), list.end(), planner::kProofFinalizer) != list.end();
}

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

void WriteAnnounced(Json& pod, const std::map<std::string, std::string>& announced) {
  if (announced.empty()) return;
  Child(pod["metadata"], "annotations", Json::object())[planner::kAnnouncedAnnotation] =
      Json(announced).dump();
}

kube::Result<void> RemoveFinalizer(kube::KubeApi& api, const Json& pod, bool as_seen) {
  const std::string ns = MetaField(pod, "namespace"), name = MetaField(pod, "name");
  const std::string uid = MetaField(pod, "uid");
  Json live = pod;
  const int tries = as_seen ? 1 : kTries;
  for (int attempt = 0;; ++attempt) {
    if (MetaField(live, "uid") != uid || !HasFinalizer(live)) return {};
    Json rest = Finalizers(live);
    rest.erase(std::remove(rest.begin(), rest.end(), Json(planner::kProofFinalizer)), rest.end());
    // A merge patch replaces the whole list, so it must be the list that we have read.
    const Json patch = {{"metadata",
                         {{"uid", uid},
                          {"resourceVersion", MetaField(live, "resourceVersion")},
                          {"finalizers", rest}}}};
    const auto patched = api.Patch(kube::Pods(), ns, name, patch, {});
    if (patched || patched.error().code == ErrorCode::kNotFound) return {};
    if (patched.error().code != ErrorCode::kConflict || attempt + 1 == tries) {
      return tl::unexpected(patched.error());
    }
    auto read = api.Get(kube::Pods(), ns, name);
    if (!read && read.error().code == ErrorCode::kNotFound) return {};
    if (!read) return tl::unexpected(read.error());
    live = std::move(*read);
  }
}

kube::Result<int> ClearFinalizers(kube::KubeApi& api, const std::string& ns) {
  kube::ListOptions options;
  options.label_selector = fmt::format("{}=worker", planner::kJobRoleLabel);
  const auto pods = api.ListAll(kube::Pods(), ns, options);
  if (!pods) return tl::unexpected(pods.error());
  int cleared = 0;
  for (const Json& pod : pods->items) {
    if (!HasFinalizer(pod)) continue;
    if (const auto removed = RemoveFinalizer(api, pod); !removed) {
      return tl::unexpected(removed.error());
    }
    ++cleared;
  }
  return cleared;
}

}  // namespace ringmaster::controllers
