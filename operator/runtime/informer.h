// A cache of one resource, of all namespaces or of some, each with a list and a watch of its own:
// rights in those namespaces are enough.
//
// Thread rule: every method is safe from any thread. The handler is called from a thread for each
// namespace, never under a lock.
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
  std::function<kube::Json(kube::Json)> keep;  // what is stored and handed on; none: all
  // Which objects (as kept) are stored; none: all. The others are only handed on.
  std::function<bool(const kube::Json&)> stores;
  ObjectCache::Index index;  // for Indexed(); none: not used
  std::chrono::milliseconds relist_backoff{200};
  std::chrono::milliseconds max_relist_backoff{30'000};
  // A watch that ends sooner than this, and had no news, is not begun again at once.
  std::chrono::milliseconds short_watch{1'000};
  std::string name;  // in state(), if there is another cache of the resource
};

class Informer {
 public:
  // `object` is the newest state; for a deleted object its last one.
  using Handler = Reflector::Handler;

  Informer(std::shared_ptr<kube::KubeApi> api, const kube::Resource& resource,
           const InformerOptions& options, const Handler& handler);
  Informer(const Informer&) = delete;

  void Start();
  void Stop();  // joins
  // False if a first list has not succeeded within `timeout`; LastError() says why.
  bool WaitForSync(std::chrono::milliseconds timeout);
  std::string LastError() const { return state().error; }

  struct State {
    std::string resource;  // plural, or the cache's name
    bool synced = false;
    std::string error;  // of the last list or watch; empty: it went well
    std::uint64_t failures = 0;
    // When the thread last began a list or a watch; a watch takes a few minutes.
    std::chrono::steady_clock::time_point last_turn;
  };
  // Of several namespaces: as the worst of them.
  State state() const;

  std::vector<ObjectPtr> All() const;
  ObjectPtr Get(const std::string& ns, const std::string& name) const;
  // Of one namespace, by name; `value` as InformerOptions::index has it.
  std::vector<ObjectPtr> Indexed(const std::string& ns, const std::string& value) const;
  // An object that we have just written: the cache must not be older than our own writes. False: it
  // is newer already.
  bool Observe(const kube::Json& object);
  // As the watch would: for who has no threads (a simulator), where Start is never called.
  void Take(kube::WatchEvent event);

 private:
  // Null: it is none of ours.
  Reflector* Of(const std::string& ns) const;

  const std::string name_;
  std::vector<std::unique_ptr<Reflector>> reflectors_;  // constant after construction
};

}  // namespace ringmaster::runtime
