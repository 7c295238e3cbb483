// Deletion: grace, finalizers, garbage collection, namespaces.
#include <algorithm>

#include "operator/kube/resources.h"
#include "operator/local/admission.h"
#include "operator/local/store.h"

namespace ringmaster::local {
namespace {

constexpr char kForeground[] = "foregroundDeletion";

bool OwnedBy(const Json& object, const std::string& uid) {
  for (const Json& ref : object["metadata"].value("ownerReferences", Json::array())) {
    if (ref.value("uid", "") == uid) return true;
  }
  return false;
}

void DropFinalizer(Json& object, const std::string& name) {
  Json kept = Json::array();
  for (const Json& f : object["metadata"].value("finalizers", Json::array())) {
    if (f != name) kept.push_back(f);
  }
  if (kept.empty()) {
    object["metadata"].erase("finalizers");
  } else {
    object["metadata"]["finalizers"] = std::move(kept);
  }
}

void DropOwner(Json& object, const std::string& uid) {
  Json kept = Json::array();
  for (const Json& ref : object["metadata"].value("ownerReferences", Json::array())) {
    if (ref.value("uid", "") != uid) kept.push_back(ref);
  }
  if (kept.empty()) {
    object["metadata"].erase("ownerReferences");
  } else {
    object["metadata"]["ownerReferences"] = std::move(kept);
  }
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

}  // namespace

Answer<Json> Store::Delete(const Resource& resource, const std::string& ns, const std::string& name,
                           const kube::DeleteOptions& options) {
  return Locked([&] { return DeleteLocked(resource, ns, name, options); });
}

Answer<Json> Store::DeleteLocked(const Resource& resource, const std::string& ns,
                                 const std::string& name, const kube::DeleteOptions& options) {
  Object live = Find(resource, ns, name);
  if (!live) return tl::unexpected(NotFound(resource, name));
  const Json& meta = (*live)["metadata"];
  std::string uid = meta["uid"];
  auto mismatch = [&](const std::string& what, const std::string& asked, const std::string& is) {
    return tl::unexpected(
        Conflict(resource, name,
                 "the " + what + " in the precondition (" + asked + ") does not match the " + what +
                     " in record (" + is + "). The object might have been " +
                     (what == "UID" ? "deleted and then recreated" : "modified")));
  };
  if (!options.uid.empty() && options.uid != uid) return mismatch("UID", options.uid, uid);
  if (!options.resource_version.empty() && options.resource_version != meta["resourceVersion"])
    return mismatch("ResourceVersion", options.resource_version, meta["resourceVersion"]);
  const std::string& policy = options.propagation;
  if (!policy.empty() && policy != "Background" && policy != "Foreground" && policy != "Orphan") {
    return tl::unexpected(Invalid({"meta.k8s.io", "v1", "deleteoptions", "DeleteOptions", false},
                                  "",
                                  {{"FieldValueNotSupported",
                                    "Unsupported value: \"" + policy +
                                        "\": supported values: \"Foreground\", \"Background\", "
                                        "\"Orphan\", \"nil\"",
                                    "propagationPolicy"}}));
  }
  Key key{resource.namespaced ? ns : "", name};
  bool foreground = options.propagation == "Foreground";
  if (options.propagation == "Orphan") OrphanDependents(uid);

  int grace = GraceSeconds(resource, *live, options);
  Json object = *live;
  Json& changed = object["metadata"];
  bool deleting = changed.contains("deletionTimestamp");
  if (!deleting || grace < changed.value("deletionGracePeriodSeconds", 0)) {
    auto now = options_.now ? options_.now() : std::chrono::system_clock::now();
    std::time_t end = std::chrono::system_clock::to_time_t(now + std::chrono::seconds(grace));
    std::tm utc{};
    gmtime_r(&end, &utc);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    changed["deletionTimestamp"] = text;
    changed["deletionGracePeriodSeconds"] = grace;
    if (changed.contains("generation"))
      changed["generation"] = changed["generation"].get<int>() + 1;
  }
  if (foreground && !deleting) changed["finalizers"].push_back(kForeground);
  if (resource == kube::Namespaces()) object["status"]["phase"] = "Terminating";

  bool held = changed.contains("finalizers") || grace > 0;
  if (!held && resource != kube::Namespaces()) {
    Json last = *live;
    Remove(resource, key);
    return last;
  }
  Json result = object == *live ? object : Commit(resource, key, live, std::move(object));
  if (resource == kube::Namespaces()) EmptyNamespace(name);
  if (foreground) {
    CollectDependents(uid, "Foreground");
    FinishForeground(uid);
  }
  return result;
}

void Store::Remove(const Resource& resource, const Key& key) {
  auto& objects = BucketOf(resource).objects;
  auto it = objects.find(key);
  if (it == objects.end()) return;
  Object live = it->second;
  std::string uid = (*live)["metadata"]["uid"];
  Commit(resource, key, live, std::nullopt);
  uids_.erase(uid);
  owners_.erase(uid);
  CollectDependents(uid, "Background");
  for (const Json& ref : (*live)["metadata"].value("ownerReferences", Json::array())) {
    FinishForeground(ref.value("uid", ""));
  }
  if (resource.namespaced) {
    Object ns = Find(kube::Namespaces(), "", key.first);
    if (ns && (*ns)["metadata"].contains("deletionTimestamp")) EmptyNamespace(key.first);
  }
}

std::vector<std::pair<const Resource*, Store::Key>> Store::Dependents(
    const std::string& owner_uid) const {
  std::vector<std::pair<const Resource*, Key>> found;
  for (const Resource& resource : kube::AllResources()) {
    for (const auto& [key, object] : BucketOf(resource).objects) {
      if (OwnedBy(*object, owner_uid)) found.push_back({&resource, key});
    }
  }
  return found;
}

void Store::CollectDependents(const std::string& owner_uid, const std::string& propagation) {
  for (const auto& [resource, key] : Dependents(owner_uid)) {
    Object live = Find(*resource, key.first, key.second);
    if (!live) continue;
    bool other_owner = false;
    for (const Json& ref : (*live)["metadata"].value("ownerReferences", Json::array())) {
      std::string uid = ref.value("uid", "");
      other_owner |= uid != owner_uid && uids_.count(uid) > 0;
    }
    if (other_owner) {
      Json object = *live;
      DropOwner(object, owner_uid);
      Commit(*resource, key, live, std::move(object));
    } else if (!(*live)["metadata"].contains("deletionTimestamp")) {
      kube::DeleteOptions options;
      options.propagation = propagation;
      (void)DeleteLocked(*resource, key.first, key.second, options);
    }
  }
}

void Store::FinishForeground(const std::string& owner_uid) {
  auto at = uids_.find(owner_uid);
  if (at == uids_.end()) return;
  auto [resource, key] = at->second;
  Object live = Find(*resource, key.first, key.second);
  if (!live || !(*live)["metadata"].contains("deletionTimestamp")) return;
  const Json finalizers = (*live)["metadata"].value("finalizers", Json::array());
  if (std::find(finalizers.begin(), finalizers.end(), kForeground) == finalizers.end()) return;
  for (const auto& [kind, name] : Dependents(owner_uid)) {
    Object dependent = Find(*kind, name.first, name.second);
    for (const Json& ref : (*dependent)["metadata"].value("ownerReferences", Json::array())) {
      if (ref.value("uid", "") == owner_uid && ref.value("blockOwnerDeletion", false)) return;
    }
  }
  Json object = *live;
  DropFinalizer(object, kForeground);
  bool done = !object["metadata"].contains("finalizers") &&
              object["metadata"].value("deletionGracePeriodSeconds", 0) == 0;
  Commit(*resource, key, live, std::move(object));
  if (done) Remove(*resource, key);
}

bool Store::OwnersGone(const Json& object) const {
  const Json owners = object["metadata"].value("ownerReferences", Json::array());
  return !owners.empty() && std::none_of(owners.begin(), owners.end(), [&](const Json& ref) {
    return uids_.count(ref.value("uid", "")) > 0;
  });
}

void Store::OrphanDependents(const std::string& owner_uid) {
  for (const auto& [resource, key] : Dependents(owner_uid)) {
    Object live = Find(*resource, key.first, key.second);
    Json object = *live;
    DropOwner(object, owner_uid);
    Commit(*resource, key, live, std::move(object));
  }
}

void Store::EmptyNamespace(const std::string& ns) {
  bool empty = true;
  for (const Resource& resource : kube::AllResources()) {
    if (!resource.namespaced) continue;
    std::vector<Key> keys;
    for (const auto& [key, object] : BucketOf(resource).objects) {
      if (key.first == ns) keys.push_back(key);
    }
    for (const Key& key : keys) {
      Object live = Find(resource, key.first, key.second);
      if (live && !(*live)["metadata"].contains("deletionTimestamp")) {
        (void)DeleteLocked(resource, key.first, key.second, {});
      }
      empty &= Find(resource, key.first, key.second) == nullptr;
    }
  }
  if (empty && Find(kube::Namespaces(), "", ns)) Remove(kube::Namespaces(), {"", ns});
}

}  // namespace ringmaster::local
