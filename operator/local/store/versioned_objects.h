// The objects of the embedded cluster and the latest changes of each resource. As in etcd every
// change gets the next version, one count for all resources; a watch goes on from any version that
// the history still has.
//
// Owner and thread: Store, under its lock.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "operator/kube/selectors.h"
#include "operator/local/store/status.h"

namespace ringmaster::local {

using Object = std::shared_ptr<const Json>;
using ObjectKey = std::pair<std::string, std::string>;  // namespace, name

// Which objects a list or a watch asks for.
struct Selection {
  const Resource* resource = nullptr;
  std::string ns;  // empty: all
  kube::LabelSelector labels;
  kube::FieldSelector fields;

  bool Matches(const Json& object) const;
};

class VersionedObjects {
 public:
  using Objects = std::map<ObjectKey, Object>;

  using Time = std::chrono::steady_clock::time_point;

  // How much of the past of each resource is kept: as many changes, of so long.
  struct History {
    size_t changes;
    std::chrono::seconds age;
    std::function<Time()> now = std::chrono::steady_clock::now;
  };

  explicit VersionedObjects(History history);

  uint64_t version() const { return version_; }
  const Objects& All(const Resource& resource) const { return Of(resource).objects; }
  // Null: there is none.
  Object Find(const Resource& resource, const std::string& ns, const std::string& name) const;

  // The newest version that the history of the resource no longer has.
  uint64_t forgotten(const Resource& resource) const { return Of(resource).forgotten; }
  void ForgetHistory(const Resource& resource);
  // The first event of the selection after `version`, which moves on to it; nullopt: there is none
  // yet. The error: 410, the history no longer has what follows `version`.
  Answer<std::optional<kube::WatchEvent>> NextEvent(const Selection& selection,
                                                    uint64_t& version) const;

  // Stores the object under a new version; what is stored.
  Json Put(const Resource& resource, const ObjectKey& key, Json object);
  // There must be such an object.
  void Erase(const Resource& resource, const ObjectKey& key);

 private:
  struct Change {
    uint64_t version;
    Time at;
    Object before;  // null: created
    Object after;   // null: deleted; `gone` is its last state
    Object gone;
  };
  struct PerResource {
    Objects objects;
    std::deque<Change> history;
    uint64_t forgotten = 0;
  };

  PerResource& Of(const Resource& resource) { return resources_.at(resource.plural); }
  const PerResource& Of(const Resource& resource) const { return resources_.at(resource.plural); }
  void Remember(PerResource& of, Change change);

  const History history_;
  uint64_t version_ = 1;
  std::map<std::string, PerResource> resources_;  // by plural
};

}  // namespace ringmaster::local
