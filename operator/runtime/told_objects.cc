#include "operator/runtime/told_objects.h"

#include <cstddef>
#include <utility>

#include "operator/api/object_key.h"

namespace ringmaster::runtime {
kube::Json Stub(const std::string& ns, const std::string& name, const std::string& uid) {
  return {{"metadata", {{"namespace", ns}, {"name", name}, {"uid", uid}}}};
}

void ToldObjects::Add(const kube::Json& object) {
  uids_[api::KeyOf(object)] = MetaField(object, "uid");
}

void ToldObjects::Remove(const kube::Json& object) {
  const auto told = uids_.find(api::KeyOf(object));
  if (told != uids_.end() && told->second == MetaField(object, "uid")) uids_.erase(told);
}

void ToldObjects::RemoveName(const kube::Json& object) { uids_.erase(api::KeyOf(object)); }

std::optional<std::string> ToldObjects::TakeReplaced(const kube::Json& by) {
  const auto told = uids_.find(api::KeyOf(by));
  if (told == uids_.end() || told->second == MetaField(by, "uid")) return std::nullopt;
  std::string uid = std::move(told->second);
  uids_.erase(told);
  return uid;
}

std::vector<kube::Json> ToldObjects::TakeGone(const HasGone& has_gone) {
  std::vector<kube::Json> gone;
  std::erase_if(uids_, [&](const auto& object) {
    const api::ObjectKey key = api::ParseKey(object.first);
    if (!has_gone({key.ns, key.name}, object.second)) return false;
    gone.push_back(Stub(key.ns, key.name, object.second));
    return true;
  });
  return gone;
}

}  // namespace ringmaster::runtime
