// A cache of one resource in one namespace (or in all), kept up to date by list and watch. It lists
// again when the watch has lost its place (410), with jitter, so that many operators don't do so at
// once.
//
// Thread rule: every method is safe from any thread. The handler is called from the reflector's
// thread, never under a lock.
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
  std::string ns;  // empty: all
  std::string label_selector;
  std::function<kube::Json(kube::Json)> keep;  // what is stored and handed on; none: all
  // Which objects (as kept) are stored; none: all. The others are only handed on.
  std::function<bool(const kube::Json&)> stores;
  ObjectCache::Index index;  // for Indexed(); none: not used
  std::chrono::milliseconds relist_backoff{200};
  std::chrono::milliseconds max_relist_backoff{30'000};
  // A watch that ends sooner than this, and had no news, is not begun again at once.
  std::chrono::milliseconds short_watch{1'000};
};

class Reflector {
 public:
  // `object` is the newest state; for a deleted object its last one, or namespace, name and uid
  // alone where that isn't stored. Who is told of an object is told of its end, before there is
  // another one of the name.
  using Handler = std::function<void(const kube::Json& object, bool deleted)>;

  Reflector(std::shared_ptr<kube::KubeApi> api, const kube::Resource& resource,
            ReflectorOptions options, Handler handler);
  ~Reflector();
  Reflector(const Reflector&) = delete;

  void Start();
  void RequestStop() { thread_.request_stop(); }
  void Stop();  // joins
  // False if the first list has not succeeded within `timeout`; health() says why.
  bool WaitForSync(std::chrono::milliseconds timeout);
  ListWatchHealth::State health() const { return health_.state(); }
  const std::string& ns() const { return options_.ns; }

  std::vector<ObjectPtr> All() const;
  ObjectPtr Get(const std::string& ns, const std::string& name) const;
  std::vector<ObjectPtr> Indexed(const std::string& value) const;
  // An object that we have just written: the cache must not be older than our own writes. False: it
  // is newer already.
  bool Observe(const kube::Json& object);
  // As its own watch would: for who has no threads (a simulator), where Start is never called.
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
  std::string resource_version_;       // its own thread only, as these; empty: list first
  bool expired_ = false;               // the last watch was refused with 410
  std::set<ObjectCache::Key> listed_;  // by the list under way
  // Uids of what the handler was told of, by "namespace/name": a list tells of what has gone by its
  // silence, or by another object of the same name. Strings, as there may be very many.
  std::unordered_map<std::string, std::string> told_;

  ObjectCache cache_;
  ListWatchHealth health_;
  std::jthread thread_;
};

}  // namespace ringmaster::runtime
