// A cache of one resource in one namespace (or in all), kept up to date by list and watch. When the
// watch has lost its place (410) it lists again, with jitter, so that many operators don't do so at
// once.
//
// Thread rule: every method is safe from any thread. The reflector's thread calls the handler,
// never under a lock.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "operator/kube/kube_api.h"
#include "operator/runtime/list_watch_health.h"
#include "operator/runtime/object_cache.h"

namespace ringmaster::runtime {

struct ReflectorOptions {
  std::string ns;  // empty: all namespaces
  std::string label_selector;
  // Selects the parts of an object that are stored and passed on; none: all.
  std::function<kube::Json(kube::Json)> keep;
  // Selects the objects (after `keep`) that are stored; none: all. The others are only passed on.
  std::function<bool(const kube::Json&)> stores;
  ObjectCache::Index index;  // for Indexed(); may be empty if that is not used
  std::chrono::milliseconds relist_backoff{200};
  std::chrono::milliseconds max_relist_backoff{30'000};
  // A watch that ended sooner than this without an event is not repeated at once.
  std::chrono::milliseconds short_watch{1'000};
};

class Reflector {
 public:
  // `object` is the newest state. For a deleted object it is the last state, or only namespace,
  // name and uid if the object isn't stored. If the handler was told of an object it is also told
  // of its deletion, and before it is told of another object with the same name.
  using Handler = std::function<void(const kube::Json& object, bool deleted)>;

  Reflector(std::shared_ptr<kube::KubeApi> api, const kube::Resource& resource,
            ReflectorOptions options, Handler handler);
  ~Reflector();
  Reflector(const Reflector&) = delete;

  void Start();
  void RequestStop() { thread_.request_stop(); }
  void Stop();  // joins
  // Returns false if the first list has not succeeded within `timeout`; health() says why.
  bool WaitForSync(std::chrono::milliseconds timeout);
  ListWatchHealth::State health() const { return health_.state(); }
  const std::string& ns() const { return options_.ns; }

  std::vector<ObjectPtr> All() const;
  ObjectPtr Get(const std::string& ns, const std::string& name) const;
  std::vector<ObjectPtr> Indexed(const std::string& value) const;
  // Stores an object that we have just written, so that the cache is not older than our own writes.
  // Returns false if the cache is newer already.
  bool Observe(const kube::Json& object);
  // Handles an event as its own watch would, for a simulator without threads that never calls
  // Start.
  void Take(kube::WatchEvent event) { OnWatchEvent(std::move(event)); }

 private:
  void Run(std::stop_token stop);
  bool Relist();
  void TakeListed(kube::Json object, const std::string& list_version);
  void TakeWatched(kube::Json object);
  void ForgetUnlisted(const std::string& list_version);
  void PassOn(const kube::Json& kept);
  void Tell(const kube::Json& kept);
  void TellReplaced(const kube::Json& by);
  void ForgetTold(const kube::Json& object);
  bool OnWatchEvent(kube::WatchEvent event);
  kube::Json Kept(kube::Json object) const;
  bool Stores(const kube::Json& kept) const { return !options_.stores || options_.stores(kept); }
  bool WatchOnce(std::stop_token stop, std::chrono::milliseconds backoff);

  const std::shared_ptr<kube::KubeApi> api_;
  const kube::Resource resource_;
  const ReflectorOptions options_;
  const Handler handler_;
  // As the two below used only by the reflector's thread; empty: a list is due.
  std::string resource_version_;
  bool expired_ = false;               // the last watch was refused with 410
  std::set<ObjectCache::Key> listed_;  // keys seen by the list in progress
  // Uid by "namespace/name" of each object that the handler was told of: a list shows a deletion
  // only by the object's absence, or by another object with its name. The keys are strings, because
  // there may be very many.
  std::unordered_map<std::string, std::string> told_;

  ObjectCache cache_;
  ListWatchHealth health_;
  std::jthread thread_;
};

}  // namespace ringmaster::runtime
