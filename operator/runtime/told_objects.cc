#include "operator/runtime/told_objects.h"

#include <cstddef>
#include <utility>

namespace ringmaster::runtime {
namespace {

std::string TextKey(const kube::Json& object) {
  return MetaField(object, "namespace") + "/" + MetaField(object, "name");
}

}  // namespace

kube::Json Stub(const std::string& ns, const std::string& name, const std::string& uid) {
  return {{"metadata", {{"namespace", ns}, {"name", name}, {"uid", uid}}}};
}

void ToldObjects::Add(const kube::Json& object) {
  uids_[TextKey(object)] = MetaField(object, "uid");
}

void ToldObjects::Remove(const kube::Json& object) {
  const auto told = uids_.find(TextKey(object));
  if (told != uids_.end() && told->second == MetaField(object, "uid")) uids_.erase(told);
}

void ToldObjects::RemoveName(const kube::Json& object) { uids_.erase(TextKey(object)); }

std::optional<std::string> ToldObjects::TakeReplaced(const kube::Json& by) {
  const auto told = uids_.find(TextKey(by));
  if (told == uids_.end() || told->second == MetaField(by, "uid")) return std::nullopt;
  std::string uid = std::move(told->second);
  uids_.erase(told);
  return uid;
}

std::vector<kube::Json> ToldObjects::TakeGone(const HasGone& has_gone) {
  std::vector<kube::Json> gone;
  std::erase_if(uids_, [&](const auto& object) {
    const std::size_t slash = object.first.find('/');
    const ObjectCache::Key key{object.first.substr(0, slash), object.first.substr(slash + 1)};
    if (!has_gone(key, object.second)) return false;
    gone.push_back(Stub(key.first, key.second, object.second));
    return true;
  });
  return gone;
}

}  // namespace ringmaster::runtime
