#include "operator/local/store/garbage_collector.h"

#include <algorithm>

#include "operator/api/time.h"
#include "operator/kube/resources.h"

namespace ringmaster::local {
namespace {

constexpr char kForeground[] = "foregroundDeletion";

bool OwnedBy(const Json& object, const std::string& uid) {
  for (const Json& ref : object["metadata"].value("ownerReferences", Json::array())) {
    if (ref.value("uid", "") == uid) return true;
  }
  return false;
}

// Drops the entries of a list in metadata for which `drop` holds; a list that is empty then goes
// too.
template <class F>
void DropFrom(Json& object, const char* list, F drop) {
  Json kept = Json::array();
  for (const Json& entry : object["metadata"].value(list, Json::array())) {
    if (!drop(entry)) kept.push_back(entry);
  }
  if (kept.empty()) {
    object["metadata"].erase(list);
  } else {
    object["metadata"][list] = std::move(kept);
  }
}

void DropOwner(Json& object, const std::string& uid) {
  DropFrom(object, "ownerReferences", [&](const Json& ref) { return ref.value("uid", "") == uid; });
}

// Only a pod that a kubelet runs has somebody to wait for.
int GraceSeconds(const Resource& resource, const Json& object, const kube::DeleteOptions& options) {
  if (resource != kube::Pods()) return 0;
  std::string phase = object.value("status", Json::object()).value("phase", "");
  if (object["spec"].value("nodeName", "").empty() || phase == "Succeeded" || phase == "Failed") {
    return 0;
  }
  int grace = options.grace_period_seconds.value_or(
      object["spec"].value("terminationGracePeriodSeconds", 30));
  return std::max(grace, 0);
}

Answer<void> CheckOptions(const Resource& resource, const std::string& name, const Json& meta,
                          const kube::DeleteOptions& options) {
  auto mismatch = [&](const std::string& what, const std::string& asked, const std::string& is) {
    return tl::unexpected(
        Conflict(resource, name,
                 "the " + what + " in the precondition (" + asked + ") does not match the " + what +
                     " in record (" + is + "). The object might have been " +
                     (what == "UID" ? "deleted and then recreated" : "modified")));
  };
  if (!options.uid.empty() && options.uid != meta["uid"]) {
    return mismatch("UID", options.uid, meta["uid"]);
  }
  if (!options.resource_version.empty() && options.resource_version != meta["resourceVersion"]) {
    return mismatch("ResourceVersion", options.resource_version, meta["resourceVersion"]);
  }
  const std::string& policy = options.propagation;
  if (policy.empty() || policy == "Background" || policy == "Foreground" || policy == "Orphan") {
    return {};
  }
  return tl::unexpected(Invalid({"meta.k8s.io", "v1", "deleteoptions", "DeleteOptions", false}, "",
                                {{"FieldValueNotSupported",
                                  "Unsupported value: \"" + policy +
                                      "\": supported values: \"Foreground\", \"Background\", "
                                      "\"Orphan\", \"nil\"",
                                  "propagationPolicy"}}));
}

}  // namespace

void GarbageCollector::Created(const Resource& resource, const ObjectKey& key, const Json& object,
                               Time now) {
  by_uid_[object["metadata"]["uid"]] = {
      kube::FindResource(resource.group, resource.version, resource.plural), key};
  // An object that comes too late for its owners goes with them.
  if (OwnersGone(object)) (void)Delete(resource, key.first, key.second, {}, now);
}

Answer<Json> GarbageCollector::Check(const Resource& resource, const std::string& ns,
                                     const std::string& name,
                                     const kube::DeleteOptions& options) const {
  const Object live = objects_.Find(resource, ns, name);
  if (!live) return tl::unexpected(NotFound(resource, name));
  if (auto ok = CheckOptions(resource, name, (*live)["metadata"], options); !ok) {
    return tl::unexpected(ok.error());
  }
  return *live;
}

Answer<Json> GarbageCollector::Delete(const Resource& resource, const std::string& ns,
                                      const std::string& name, const kube::DeleteOptions& options,
                                      Time now) {
  const auto live = Check(resource, ns, name, options);
  if (!live) return live;
  const std::string uid = (*live)["metadata"]["uid"];
  const ObjectKey key{resource.namespaced ? ns : "", name};
  const bool foreground = options.propagation == "Foreground";
  if (options.propagation == "Orphan") CollectDependents(uid, "Orphan", now);

  const int grace = GraceSeconds(resource, *live, options);
  Json object = *live;
  Json& changed = object["metadata"];
  const bool deleting = changed.contains("deletionTimestamp");
  if (!deleting || grace < changed.value("deletionGracePeriodSeconds", 0)) {
    changed["deletionTimestamp"] = api::FormatTime(now + std::chrono::seconds(grace));
    changed["deletionGracePeriodSeconds"] = grace;
    if (changed.contains("generation"))
      changed["generation"] = changed["generation"].get<int>() + 1;
  }
  if (foreground && !deleting) changed["finalizers"].push_back(kForeground);
  if (resource == kube::Namespaces()) object["status"]["phase"] = "Terminating";

  const bool held = changed.contains("finalizers") || grace > 0;
  if (!held && resource != kube::Namespaces()) {
    Remove(resource, key, now);
    return *live;
  }
  Json result = object == *live ? object : objects_.Put(resource, key, std::move(object));
  if (resource == kube::Namespaces()) EmptyNamespace(name, now);
  if (foreground) {
    CollectDependents(uid, "Foreground", now);
    FinishForeground(uid, now);
  }
  return result;
}

void GarbageCollector::Remove(const Resource& resource, const ObjectKey& key, Time now) {
  const Object live = objects_.Find(resource, key.first, key.second);
  if (!live) return;
  const std::string uid = (*live)["metadata"]["uid"];
  objects_.Erase(resource, key);
  by_uid_.erase(uid);
  fields_.Forget(uid);
  CollectDependents(uid, "Background", now);
  for (const Json& ref : (*live)["metadata"].value("ownerReferences", Json::array())) {
    FinishForeground(ref.value("uid", ""), now);
  }
  if (resource.namespaced) {
    Object ns = objects_.Find(kube::Namespaces(), "", key.first);
    if (ns && (*ns)["metadata"].contains("deletionTimestamp")) EmptyNamespace(key.first, now);
  }
}

std::vector<GarbageCollector::Place> GarbageCollector::Dependents(
    const std::string& owner_uid) const {
  std::vector<Place> found;
  for (const Resource& resource : kube::AllResources()) {
    for (const auto& [key, object] : objects_.All(resource)) {
      if (OwnedBy(*object, owner_uid)) found.push_back({&resource, key});
    }
  }
  return found;
}

void GarbageCollector::CollectDependents(const std::string& owner_uid,
                                         const std::string& propagation, Time now) {
  for (const auto& [resource, key] : Dependents(owner_uid)) {
    Object live = objects_.Find(*resource, key.first, key.second);
    if (!live) continue;
    bool stays = propagation == "Orphan";
    for (const Json& ref : (*live)["metadata"].value("ownerReferences", Json::array())) {
      std::string uid = ref.value("uid", "");
      stays |= uid != owner_uid && by_uid_.count(uid) > 0;
    }
    if (stays) {
      Json object = *live;
      DropOwner(object, owner_uid);
      objects_.Put(*resource, key, std::move(object));
    } else if (!(*live)["metadata"].contains("deletionTimestamp")) {
      kube::DeleteOptions options;
      options.propagation = propagation;
      (void)Delete(*resource, key.first, key.second, options, now);
    }
  }
}

void GarbageCollector::FinishForeground(const std::string& owner_uid, Time now) {
  auto at = by_uid_.find(owner_uid);
  if (at == by_uid_.end()) return;
  auto [resource, key] = at->second;
  Object live = objects_.Find(*resource, key.first, key.second);
  if (!live || !(*live)["metadata"].contains("deletionTimestamp")) return;
  const Json finalizers = (*live)["metadata"].value("finalizers", Json::array());
  if (std::find(finalizers.begin(), finalizers.end(), kForeground) == finalizers.end()) return;
  for (const auto& [kind, name] : Dependents(owner_uid)) {
    Object dependent = objects_.Find(*kind, name.first, name.second);
    for (const Json& ref : (*dependent)["metadata"].value("ownerReferences", Json::array())) {
      if (ref.value("uid", "") == owner_uid && ref.value("blockOwnerDeletion", false)) return;
    }
  }
  Json object = *live;
  DropFrom(object, "finalizers", [](const Json& f) { return f == kForeground; });
  bool done = !object["metadata"].contains("finalizers") &&
              object["metadata"].value("deletionGracePeriodSeconds", 0) == 0;
  objects_.Put(*resource, key, std::move(object));
  if (done) Remove(*resource, key, now);
}

bool GarbageCollector::OwnersGone(const Json& object) const {
  const Json owners = object["metadata"].value("ownerReferences", Json::array());
  return !owners.empty() && std::none_of(owners.begin(), owners.end(), [&](const Json& ref) {
    return by_uid_.count(ref.value("uid", "")) > 0;
  });
}

bool GarbageCollector::IsEmpty(const std::string& ns) const {
  const auto& kinds = kube::AllResources();
  return std::none_of(kinds.begin(), kinds.end(), [&](const Resource& resource) {
    const auto& objects = objects_.All(resource);
    return resource.namespaced && std::any_of(objects.begin(), objects.end(), [&](const auto& one) {
             return one.first.first == ns;
           });
  });
}

void GarbageCollector::EmptyNamespace(const std::string& ns, Time now) {
  // What is removed below asks for it again, for each of thousands.
  if (!emptying_.insert(ns).second) return;
  for (const Resource& resource : kube::AllResources()) {
    if (!resource.namespaced) continue;
    std::vector<ObjectKey> keys;
    for (const auto& [key, object] : objects_.All(resource)) {
      if (key.first == ns) keys.push_back(key);
    }
    for (const ObjectKey& key : keys) {
      Object live = objects_.Find(resource, key.first, key.second);
      if (live && !(*live)["metadata"].contains("deletionTimestamp")) {
        (void)Delete(resource, key.first, key.second, {}, now);
      }
    }
  }
  emptying_.erase(ns);
  if (IsEmpty(ns) && objects_.Find(kube::Namespaces(), "", ns))
    Remove(kube::Namespaces(), {"", ns}, now);
}

}  // namespace ringmaster::local
