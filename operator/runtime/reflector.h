// Lists and watches one resource in one namespace (or in all), for a cache and a handler
// (object_feed.h). When the watch has lost its place (410) it lists again, with jitter, so that
// many operators don't do so at once.
//
// Thread rule: every method but OnWatchEvent is safe from any thread. The reflector's thread calls
// the handler, never under a lock.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "operator/kube/kube_api.h"
#include "operator/runtime/list_watch_health.h"
#include "operator/runtime/object_cache.h"
#include "operator/runtime/object_feed.h"

namespace ringmaster::runtime {

struct ReflectorOptions {
  std::string ns;  // empty: all namespaces
  std::string label_selector;
  ObjectSelection objects;  // what is kept of which objects
  std::chrono::milliseconds relist_backoff{200};
  std::chrono::milliseconds max_relist_backoff{30'000};
  // A watch that ended sooner than this without an event is not repeated at once.
  std::chrono::milliseconds short_watch{1'000};
};

class Reflector {
 public:
  using Handler = ObjectFeed::Handler;

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

  const ObjectCache& cache() const { return feed_.cache(); }
  // Stores an object that we have just written; see ObjectFeed.
  bool Observe(kube::Json object) { return feed_.Observe(std::move(object)); }
  void ObserveDeletion(const kube::Json& object, const std::string& since) {
    feed_.ObserveDeletion(object, since);
  }
  // Takes an event of the watch. Also called by a simulator without threads, which never calls
  // Start.
  void OnWatchEvent(kube::WatchEvent event);

 private:
  void Run(std::stop_token stop);
  bool Relist();
  bool WatchOnce(std::stop_token stop, std::chrono::milliseconds backoff);

  const std::shared_ptr<kube::KubeApi> api_;
  const kube::Resource resource_;
  const ReflectorOptions options_;
  ObjectFeed feed_;
  ListWatchHealth health_;
  // Used only by the reflector's thread:
  std::string resource_version_;  // empty: a list is due
  bool expired_ = false;          // the last watch was refused with 410
  std::jthread thread_;
};

}  // namespace ringmaster::runtime
