// A cache of one resource, in all namespaces or in some. Each of those namespaces has a list and a
// watch of its own, so rights in these namespaces are enough.
//
// Thread rule: every method is safe from any thread. Each namespace has a thread that calls the
// handler, never under a lock.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "operator/kube/kube_api.h"
#include "operator/runtime/object_cache.h"
#include "operator/runtime/reflector.h"

namespace ringmaster::runtime {

struct InformerOptions {
  std::vector<std::string> namespaces;  // empty: all
  std::string label_selector;
  // Selects the parts of an object that are stored and passed on; none: all.
  std::function<kube::Json(kube::Json)> keep;
  // Selects the objects (after `keep`) that are stored; none: all. The others are only passed on.
  std::function<bool(const kube::Json&)> stores;
  ObjectCache::Index index;  // for Indexed(); may be empty if that is not used
  ObjectCache::Storage storage;
  kube::Unread unread;  // fields that `keep` drops and a watch needn't bring
  std::chrono::milliseconds relist_backoff{200};
  std::chrono::milliseconds max_relist_backoff{30'000};
  // A watch that ended sooner than this without an event is not repeated at once.
  std::chrono::milliseconds short_watch{1'000};
  std::string name;  // shown in state() if the resource has another cache, too
};

class Informer {
 public:
  // `object` is the newest state, or the last one of a deleted object.
  using Handler = Reflector::Handler;

  Informer(std::shared_ptr<kube::KubeApi> api, const kube::Resource& resource,
           const InformerOptions& options, const Handler& handler);
  Informer(const Informer&) = delete;

  void Start();
  void Stop();  // joins
  // Returns false if not every first list has succeeded within `timeout`; LastError() says why.
  bool WaitForSync(std::chrono::milliseconds timeout);
  std::string LastError() const { return state().error; }

  struct State {
    std::string resource;  // plural of the resource, or the cache's name
    bool synced = false;
    std::string error;  // of the last list or watch; empty if it succeeded
    std::uint64_t failures = 0;
    // When the thread last began a list or a watch; a watch takes a few minutes.
    std::chrono::steady_clock::time_point last_turn;
  };
  // If there are several namespaces, the worst state of each counts.
  State state() const;

  std::vector<ObjectPtr> All() const;
  ObjectPtr Get(const std::string& ns, const std::string& name) const;
  // Objects of one namespace by InformerOptions::index, sorted by name.
  std::vector<ObjectPtr> Indexed(const std::string& ns, const std::string& value) const;
  // Stores an object that we have just written, so that the cache is not older than our own writes.
  // Returns false if the cache is newer already.
  bool Observe(kube::Json object);
  // The API server has accepted our deletion of this object, which is known by its namespace, name
  // and uid: from now on it is shown as being deleted since `since` (RFC 3339).
  void ObserveDeletion(const kube::Json& object, const std::string& since);
  // Handles an event as the watch would, for a simulator without threads that never calls Start.
  void Take(kube::WatchEvent event);

 private:
  // Null if no reflector covers the namespace.
  Reflector* Of(const std::string& ns) const;

  const std::string name_;
  std::vector<std::unique_ptr<Reflector>> reflectors_;  // constant after construction
};

}  // namespace ringmaster::runtime
