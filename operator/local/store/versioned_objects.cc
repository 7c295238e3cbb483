#include "operator/local/store/versioned_objects.h"

#include <algorithm>
#include <utility>

#include "operator/kube/resources.h"

namespace ringmaster::local {

bool Selection::Matches(const Json& object) const {
  if (!ns.empty() && object["metadata"].value("namespace", "") != ns) return false;
  return labels.Matches(object) && fields.Matches(object);
}

VersionedObjects::VersionedObjects(History history) : history_(std::move(history)) {
  for (const Resource& resource : kube::AllResources()) resources_[resource.plural];
}

Object VersionedObjects::Find(const Resource& resource, const std::string& ns,
                              const std::string& name) const {
  const Objects& objects = All(resource);
  auto it = objects.find({resource.namespaced ? ns : "", name});
  return it == objects.end() ? nullptr : it->second;
}

void VersionedObjects::ForgetHistory(const Resource& resource) {
  Of(resource).history.clear();
  Of(resource).forgotten = version_;
}

Answer<std::optional<kube::WatchEvent>> VersionedObjects::NextEvent(const Selection& selection,
                                                                    uint64_t& version) const {
  using Type = kube::WatchEvent::Type;
  const PerResource& of = Of(*selection.resource);
  if (version < of.forgotten) return tl::unexpected(Expired(version, of.forgotten));
  auto change = std::upper_bound(of.history.begin(), of.history.end(), version,
                                 [](uint64_t v, const Change& c) { return v < c.version; });
  for (; change != of.history.end(); ++change) {
    version = change->version;
    const bool before = change->before && selection.Matches(*change->before);
    const bool after = change->after && selection.Matches(*change->after);
    if (after) return kube::WatchEvent{before ? Type::kModified : Type::kAdded, *change->after};
    // Deleted, or no longer what the selection asks for.
    if (before) {
      return kube::WatchEvent{Type::kDeleted, change->after ? *change->after : *change->gone};
    }
  }
  version = std::max(version, version_);
  return std::nullopt;
}

Json VersionedObjects::Put(const Resource& resource, const ObjectKey& key, Json object) {
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
  PerResource& of = Of(resource);
  Object& slot = of.objects[key];
  Change change{version_, history_.now(), slot, std::make_shared<const Json>(std::move(object)),
                nullptr};
  slot = change.after;
  Remember(of, std::move(change));
  return *slot;
}

void VersionedObjects::Erase(const Resource& resource, const ObjectKey& key) {
  PerResource& of = Of(resource);
  auto it = of.objects.find(key);
  Json last = *it->second;
  last["metadata"]["resourceVersion"] = std::to_string(++version_);
  Change change{version_, history_.now(), it->second, nullptr,
                std::make_shared<const Json>(std::move(last))};
  of.objects.erase(it);
  Remember(of, std::move(change));
}

void VersionedObjects::Remember(PerResource& of, Change change) {
  const Time oldest = change.at - history_.age;
  of.history.push_back(std::move(change));
  while (of.history.size() > history_.changes || of.history.front().at < oldest) {
    of.forgotten = of.history.front().version;
    of.history.pop_front();
  }
}

}  // namespace ringmaster::local
